//! Where the bridge answers otherwise than `mcp-slicer` on purpose, and why.

/// Cases that differ for one reason.
pub struct Difference {
    pub version: &'static str,
    pub cases: &'static [&'static str],
    pub why: &'static str,
}

const SLICERS_WORDS: &str = "The words of Slicer are kept; theirs gives the number of the error only.";
const WHAT_TO_DO: &str = "The same beginning; the rest says what to do instead of what Python raised.";
const MARKED: &str = "A failed screenshot is marked as an error, so that no program takes it for a success.";
const IMAGE_SIZE: &str = "`image_size` bounds every view, not only slices.";
const PNG_ON_REQUEST: &str = "JPEG as in 0.3; `format=\"png\"` gives PNG.";
const NEWER: &str = "This release had no such tool yet.";
const WHOLE_DICT: &str = "The dictionary is the result and comes back whole; nothing of it is lost.";

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    Difference { version: "0.3.1", cases: &["no match, properties"], why: SLICERS_WORDS },
    Difference {
        version: "0.3.1",
        cases: &["unknown tool"],
        why: "MCP wants a protocol error for a tool that there is not.",
    },
    Difference {
        version: "0.3.1",
        cases: &["name that is null"],
        why: "Many clients send null for an argument that they leave out; here it means that.",
    },
    Difference {
        version: "0.3.1",
        cases: &["half a surrogate pair"],
        why: "Half a character becomes the replacement character; theirs loses the whole result.",
    },
    Difference {
        version: "0.3.1",
        cases: &["NaN", "Infinity in a list"],
        why: "The number comes as a text; theirs sends what is not JSON, which strict clients cannot read.",
    },
    Difference {
        version: "0.3.1",
        cases: &["success false without message", "success false with more", "the key __execResult among others"],
        why: WHOLE_DICT,
    },
    Difference {
        version: "0.3.1",
        cases: &["empty code"],
        why: "Slicer answers no code with nothing; here the reply says that there is no code.",
    },
    Difference {
        version: "0.3.1",
        cases: &["sys.exit"],
        why: "Slicer goes on and says so; on the bare route the code ends it.",
    },
    Difference { version: "0.3.1", cases: &["Slicer dies in the call"], why: WHAT_TO_DO },
    Difference {
        version: "0.3.1",
        cases: &["exec off"],
        why: "It is told apart from other errors, with the box to tick.",
    },
    Difference {
        version: "0.3.1",
        cases: &["exec off, slice"],
        why: "Slicer's own picture of the slice is given, with the note that it shows volumes only.",
    },
    Difference { version: "0.3.1", cases: &["absent", "absent, list_nodes"], why: WHAT_TO_DO },
    Difference {
        version: "0.3.1",
        cases: &["an encoding cookie latin-1"],
        why: "Text is run as it was sent: a comment in it cannot make Slicer read it otherwise.",
    },
    Difference {
        version: "0.3.1",
        cases: &["an exception without text", "a failed assertion"],
        why: "An exception without a text is named.",
    },
    Difference {
        version: "0.3.1",
        cases: &["KeyboardInterrupt"],
        why: "It is answered; on the bare route no reply ever comes.",
    },
    Difference {
        version: "0.3.1",
        cases: &["absent, screenshot", "absent, slice", "slice that there is not", "unknown view_type"],
        why: MARKED,
    },
    Difference {
        version: "0.3.1",
        cases: &["slice name with a quote"],
        why: "Marked as an error; theirs puts the name into the code, where the quotation mark ends the text.",
    },
    Difference { version: "0.3.1", cases: &["application with image_size", "3d with image_size"], why: IMAGE_SIZE },
    Difference {
        version: "0.3.1",
        cases: &["slice with a space after the name", "view_type in capitals"],
        why: "Spaces at the ends and capitals do not matter.",
    },
    Difference {
        version: "0.3.1",
        cases: &["slice without name"],
        why: "Without a name the first slice view on the screen is taken.",
    },
    Difference {
        version: "0.3.1",
        cases: &["slice larger than it is"],
        why: "Pictures are made smaller, never larger: larger would show nothing more.",
    },
    Difference {
        version: "0.3.1",
        cases: &["3d from nowhere"],
        why: "An axis that there is not is an error; theirs leaves the camera where it is and says that it is that side.",
    },
    Difference { version: "0.2.1", cases: &["no match, properties"], why: SLICERS_WORDS },
    Difference {
        version: "0.2.1",
        cases: &["exec off"],
        why: "It is told apart from other errors, with the box to tick.",
    },
    Difference { version: "0.2.1", cases: &["absent, list_nodes"], why: WHAT_TO_DO },
    Difference {
        version: "0.2.1",
        cases: &[
            "application",
            "slice red",
            "slice orientation sagittal",
            "slice offset 10 mm",
            "3d",
            "3d from anterior",
        ],
        why: PNG_ON_REQUEST,
    },
    Difference { version: "0.2.1", cases: &["unknown view_type"], why: MARKED },
    Difference { version: "0.1.2", cases: &["no match, properties"], why: SLICERS_WORDS },
    Difference {
        version: "0.1.2",
        cases: &["exec off"],
        why: "It is told apart from other errors, with the box to tick.",
    },
    Difference { version: "0.1.2", cases: &["absent, list_nodes"], why: WHAT_TO_DO },
    Difference {
        version: "0.1.2",
        cases: &[
            "application",
            "slice red",
            "slice orientation sagittal",
            "slice offset 10 mm",
            "3d",
            "3d from anterior",
        ],
        why: NEWER,
    },
];

/// Why this case may differ.
pub fn reason(version: &str, case: &str) -> Option<&'static str> {
    DIFFERENCES.iter().find(|listed| listed.version == version && listed.cases.contains(&case)).map(|listed| listed.why)
}
