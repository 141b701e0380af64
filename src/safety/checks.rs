//! Rules that look at the arguments of a call. A table names the rule (`checks`); the rule is here.

use super::limits;
use super::verdict::Capability;
use super::walk::Walker;
use super::walk::call::{Argument, Call};
use super::walk::origin::{Origin, Value};

type Check = for<'t> fn(&mut Walker<'t>, &Call<'t>) -> Option<Value>;

const CHECKS: &[(&str, Check)] = &[
    ("open", open),
    ("attribute_by_name", attribute_by_name),
    ("set_attribute_by_name", set_attribute_by_name),
    ("has_attribute", has_attribute),
    ("class_maker", class_maker),
    ("remove_node", remove_node),
    ("same", same),
    ("array_view", array_view),
    ("writes_first", writes_first),
    ("format", format_text),
    ("settings_write", settings_write),
    ("settings_read", settings_read),
    ("download", download),
    ("numpy_load", numpy_load),
    ("torch_load", torch_load),
    ("query_text", query_text),
    ("timer_interval", timer_interval),
    ("timer_single", timer_single),
    ("range", limits::range),
    ("sleep", limits::sleep),
    ("allocate", limits::allocate),
    ("endless_iter", limits::endless_iter),
    ("collect", collect),
    ("next_element", next_element),
    ("super", super_object),
    ("observer", observer),
    ("image_file", image_file),
    ("data_or_file", data_or_file),
    ("clear_scene", clear_scene),
    ("scene_state", scene_state),
    ("overwrites_node", overwrites_node),
    ("find_child", find_child),
    ("delay_display", limits::delay_display),
    ("allocate_box", limits::allocate_box),
    ("endless_repeat", limits::endless_repeat),
    ("power", limits::power),
    ("repeats", limits::repeats),
    ("consume", consume),
    ("timer_delay", timer_delay),
    ("path_text", path_text),
    ("clipboard_write", clipboard_write),
    ("third_is_output", third_is_output),
    ("steps", limits::steps),
    ("pattern", pattern),
    ("number_of", number_of),
    ("live_view", live_view),
    ("sized", limits::sized),
    ("square", limits::square),
];

/// Whether there is a rule of this name.
#[cfg(test)]
pub(super) fn is_known(name: &str) -> bool {
    CHECKS.iter().any(|(known, _)| *known == name)
}

/// Runs the rule `name`. `Some` replaces what the call gives.
pub(super) fn run<'t>(name: &str, walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let check = CHECKS.iter().find(|(known, _)| *known == name)?.1;
    check(walker, call)
}

/// What holds for every call that leaves this code.
pub(super) fn any_call<'t>(walker: &mut Walker<'t>, call: &Call<'t>) {
    if let Some(out) = call.keyword("out")
        && (out.value.has_object("@array") || out.value.has_object("@volumearray"))
    {
        walker.note(out.node, Capability::OverwriteData, false);
    }
}

fn known_text<'a>(argument: Option<&'a Argument<'_>>) -> Option<&'a str> {
    argument.and_then(|a| a.value.text()).filter(|t| !t.starts_with('\0'))
}

fn open<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let mode = call.argument(1, &["mode"]);
    let reads = !call.splat
        && match mode {
            None => true,
            Some(_) => known_text(mode).is_some_and(|m| !m.contains(['w', 'a', 'x', '+'])),
        };
    let capability = if reads { Capability::ReadFile } else { Capability::WriteFile };
    let scope = known_text(call.argument(0, &["file"])).map(str::to_owned);
    walker.note_with(call.node, capability, false, None, None, scope);
    None
}

fn image_file<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    // `:/…` is a picture inside the program.
    if let Some(path) = known_text(call.argument(0, &[])).filter(|p| !p.starts_with(':')) {
        let scope = Some(path.to_owned());
        walker.note_with(call.node, Capability::ReadFile, false, None, None, scope);
    }
    None
}

fn attribute_by_name<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let Some(name) = known_text(call.argument(1, &[])).filter(|_| !call.splat) else {
        walker.note(call.node, Capability::Reflection, false);
        return Some(Value::unknown());
    };
    let base = call.argument(0, &[]).map_or_else(Value::unknown, |a| a.value.clone());
    let name = name.to_owned();
    let mut value = walker.member(&base, &name, call.node);
    if let Some(default) = call.argument(2, &[]) {
        value.merge(&default.value);
    }
    Some(value)
}

fn set_attribute_by_name<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let Some(name) = known_text(call.argument(1, &[])).filter(|_| !call.splat) else {
        walker.note(call.node, Capability::Reflection, false);
        return Some(Value::plain());
    };
    let base = call.argument(0, &[]).map_or_else(Value::unknown, |a| a.value.clone());
    let value = call.argument(2, &[]).map_or_else(Value::plain, |a| a.value.clone());
    let name = name.to_owned();
    walker.store_member(&base, &name, &value, call.node);
    Some(Value::plain())
}

fn has_attribute<'t>(_: &mut Walker<'t>, _: &Call<'t>) -> Option<Value> {
    Some(Value::plain())
}

/// `type(x)` asks for a type, `type(name, bases, members)` makes one.
fn class_maker<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.arguments.len() > 1 || call.splat {
        walker.note(call.node, Capability::Reflection, false);
    }
    // A class has the methods of its objects.
    let mut value = call.argument(0, &[]).map_or_else(Value::unknown, |a| a.value.clone());
    value.add(Origin::Unknown);
    Some(value)
}

fn is_own(value: &Value) -> bool {
    !value.is_empty()
        && value.has_object("@ownnode")
        && value
            .origins()
            .iter()
            .all(|o| matches!(o, Origin::Plain) || matches!(o, Origin::Object(k) if &**k == "@ownnode"))
}

fn remove_node<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let own = !call.splat && call.argument(0, &[]).is_some_and(|a| is_own(&a.value));
    if !own {
        walker.note(call.node, Capability::DeleteNodes, false);
    }
    Some(Value::plain())
}

/// Gives its argument back (`AddNode`).
fn same<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    call.argument(0, &[]).map(|a| a.value.clone())
}

/// An array that shares the memory of a node: of an own node it may be changed freely.
fn array_view<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let own = call.argument(0, &[]).is_some_and(|a| is_own(&a.value));
    Some(if own { Value::unknown() } else { Value::of(Origin::Object("@array".into())) })
}

/// A path that is put together: reading it comes later, where the keys it leads to are out of sight.
fn path_text<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let parts: Vec<&str> = call.arguments.iter().filter_map(|a| known_text(Some(a))).collect();
    let path = parts.join("/");
    walker.guarded_path(call.node, &path);
    None
}

/// A pattern with a repeated repetition (`(a+)+`) can take for ever on a short text.
fn pattern<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let nested = known_text(call.argument(0, &["pattern"]))
        .is_some_and(|text| text.as_bytes().windows(3).any(|w| matches!(w, [b'+' | b'*', b')', b'+' | b'*' | b'{'])));
    if nested {
        walker.note_why(call.node, Capability::Hang, false, "Matching this pattern can take for ever on a short text.");
    }
    None
}

/// `float('inf')` is a number too.
fn number_of<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let argument = &call.argument(0, &[])?.value;
    let number = argument.number().or_else(|| argument.text()?.trim().parse::<f64>().ok())?;
    (!number.is_nan()).then(|| Value::of(Origin::Number(number)))
}

/// A numpy array over the memory of an image that is in the scene.
fn live_view<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let live = call.argument(0, &[]).is_some_and(|a| a.value.has_object("@livearray"));
    live.then(|| Value::of(Origin::Object("@array".into())))
}

/// What the person has copied is replaced.
fn clipboard_write<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    walker.note_why(call.node, Capability::OverwriteData, false, "This replaces what is on the clipboard.");
    Some(Value::plain())
}

/// `numpy.add(a, b, out)`.
fn third_is_output<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(2, &[]).is_some_and(|a| a.value.has_object("@array")) {
        walker.note(call.node, Capability::OverwriteData, false);
    }
    None
}

/// Functions that fill their first argument (`numpy.copyto`).
fn writes_first<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(0, &["dst", "a", "arr"]).is_some_and(|a| a.value.has_object("@array")) {
        walker.note(call.node, Capability::OverwriteData, false);
    }
    None
}

/// Fields such as `{0.__class__}` read attributes.
fn format_text<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let base = call.callee.child_by_field_name("object");
    let value = base.map_or_else(Value::unknown, |b| walker.eval(b));
    // `str.format(text, …)` has the text as its first argument.
    let through_class = value.origins().iter().any(|o| matches!(o, Origin::Name(_)));
    let texts =
        if through_class { call.argument(0, &[]).map_or_else(Value::unknown, |a| a.value.clone()) } else { value };
    let written = base.is_some_and(|b| !matches!(b.kind(), "identifier" | "attribute"));
    let reaches = texts.origins().iter().any(|o| match o {
        Origin::Text(text) if text.starts_with('\0') => written,
        Origin::Text(text) => field_reaches(text),
        _ => through_class,
    });
    if reaches {
        walker.note(call.node, Capability::Reflection, false);
    }
    Some(Value::plain())
}

/// Whether a replacement field of `text` reads an underscored attribute.
pub(super) fn field_reaches(text: &str) -> bool {
    text.split('{').skip(1).any(|field| {
        let name = field.split(['}', ':', '!']).next().unwrap_or("");
        name.contains("._") || name.contains("[_") || name.contains("['_")
    })
}

const SECRET_WORDS: &[&str] = &["password", "passwd", "token", "secret", "apikey", "api_key", "credential", "auth"];
/// Settings that decide what Slicer loads or runs when it starts.
const RUNNING_KEYS: &[&str] = &[
    "modules/additionalpaths",
    "application/",
    "python/",
    "developer",
    "extensions/",
    "slicerexecutionmodel",
    "startup",
];

fn settings_write<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let key = known_text(call.argument(0, &[])).map(str::to_ascii_lowercase);
    let runs = key
        .as_deref()
        .is_some_and(|k| RUNNING_KEYS.iter().any(|r| k.starts_with(r) || (*r == "developer" && k.contains(r))));
    if runs {
        walker.note_why(
            call.node,
            Capability::Settings,
            true,
            "This setting decides what Slicer loads or runs at every start.",
        );
    } else {
        walker.note(call.node, Capability::Settings, false);
    }
    Some(Value::plain())
}

fn settings_read<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    match known_text(call.argument(0, &["key"])) {
        Some(key) => {
            let key = key.to_ascii_lowercase();
            if key.contains("startup") {
                let why = "This setting names what Slicer runs at every start.";
                walker.note_why(call.node, Capability::Settings, true, why);
            }
            if SECRET_WORDS.iter().any(|w| key.contains(w)) {
                walker.note(call.node, Capability::Secrets, false);
            }
        }
        None => walker.note(call.node, Capability::Settings, false),
    }
    Some(Value::unknown())
}

/// Downloads to a place that the code names. Plain http can be changed on the way, so it is not offered.
fn download<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let plain =
        call.arguments.iter().any(|a| a.value.text().is_some_and(|t| t.to_ascii_lowercase().starts_with("http:")));
    let address = call.arguments.iter().find_map(|a| a.value.text().filter(|t| t.contains("://")).map(str::to_owned));
    let why = plain
        .then(|| "This downloads over an unprotected connection, where anyone can change what arrives.".to_owned());
    walker.note_with(call.node, Capability::Network, plain, why, None, address);
    None
}

fn truth(walker: &Walker<'_>, argument: Option<&Argument<'_>>) -> Option<bool> {
    match walker.text(argument?.node) {
        "True" | "1" => Some(true),
        "False" | "0" => Some(false),
        _ => None,
    }
}

fn numpy_load<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let scope = known_text(call.argument(0, &["file"])).map(str::to_owned);
    walker.note_with(call.node, Capability::ReadFile, false, None, None, scope);
    let pickles =
        call.splat || call.argument(2, &["allow_pickle"]).is_some_and(|a| truth(walker, Some(a)) != Some(false));
    if pickles {
        walker.note_why(
            call.node,
            Capability::DynamicCode,
            false,
            "Loading with pickles runs code that the file contains.",
        );
    }
    None
}

fn torch_load<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    walker.note(call.node, Capability::ReadFile, false);
    if truth(walker, call.keyword("weights_only")) != Some(true) {
        walker.note_why(
            call.node,
            Capability::DynamicCode,
            false,
            "Loading a model file this way runs code that it contains.",
        );
    }
    None
}

/// `DataFrame.query` and `eval` take text that can name Python objects with `@`.
fn query_text<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let text = call.argument(0, &["expr"]);
    let computed = text.is_some_and(|a| matches!(a.value.origins(), [Origin::Text(t)] if t.starts_with('\0')));
    let reaches = known_text(text).is_some_and(|t| t.contains("@") && (t.contains('.') || t.contains("__")));
    if computed || reaches {
        walker.note(call.node, Capability::DynamicCode, false);
    }
    None
}

fn timer_interval<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(0, &[]).and_then(|a| a.value.number()).is_some_and(|ms| ms < 1.0) && !walker.single_shot {
        walker.note_why(call.node, Capability::Timer, true, "A timer without a pause keeps Slicer busy for good.");
    } else if !walker.single_shot {
        walker.note(call.node, Capability::Timer, false);
    }
    None
}

fn timer_single<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if truth(walker, call.argument(0, &[])) == Some(true) {
        walker.single_shot = true;
    }
    None
}

/// A single shot far in the future runs when nobody remembers it.
fn timer_delay<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let late = call.argument(0, &[]).and_then(|a| a.value.number()).is_some_and(|ms| ms > 60_000.0);
    // A function that calls itself again through a timer never comes to an end.
    let again = walker
        .current_function
        .is_some_and(|current| call.arguments.iter().any(|a| a.value.origins().contains(&Origin::Function(current))));
    if late || again {
        walker.note(call.node, Capability::Timer, false);
    }
    Some(Value::plain())
}

/// Functions that go through all of their argument.
fn consume<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(0, &[]).is_some_and(|a| a.value.has_object("@endless")) {
        walker.note(call.node, Capability::Hang, true);
    }
    None
}

/// `list(x)`, `sorted(x)`, `reversed(x)`: the same elements.
fn collect<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let source = &call.argument(0, &[])?.value.clone();
    let keeps = source.origins().iter().all(|o| matches!(o, Origin::Items(_) | Origin::Object(_)));
    if source.has_object("@endless") {
        walker.note(call.node, Capability::Hang, true);
    }
    keeps.then(|| source.clone())
}

fn next_element<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let mut value = walker.elements(&call.argument(0, &[])?.value.clone());
    if let Some(default) = call.argument(1, &[]) {
        value.merge(&default.value);
    }
    Some(value)
}

fn super_object<'t>(_: &mut Walker<'t>, _: &Call<'t>) -> Option<Value> {
    Some(Value::of(Origin::Super))
}

/// Takes data, or the name of a file to read.
fn data_or_file<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let data = call.argument(0, &[]).is_some_and(|a| {
        a.value.origins().iter().all(|o| matches!(o, Origin::Object(k) if matches!(&**k, "@vtkobject" | "@imagedata")))
    });
    if call.splat || !data {
        let scope = known_text(call.argument(0, &[])).map(str::to_owned);
        walker.note_with(call.node, Capability::ReadFile, false, None, None, scope);
    }
    None
}

/// `Clear(True)` also removes the nodes that Slicer's own views stand on.
fn clear_scene<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let all = truth(walker, call.argument(0, &["removeSingletons"])) == Some(true);
    walker.note(call.node, Capability::ClearScene, all);
    Some(Value::plain())
}

/// Writes into the node that is its first argument.
fn overwrites_node<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.splat || !call.argument(0, &["volumeNode"]).is_some_and(|a| is_own(&a.value)) {
        walker.note(call.node, Capability::OverwriteData, false);
    }
    None
}

/// Widgets found below the main window belong to Slicer and not to this code.
fn find_child<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let elsewhere = call.argument(0, &["widget"]).is_some_and(|a| {
        !a.value.has_object("@mainwindow") && !matches!(a.value.origins(), [Origin::Text(_) | Origin::Plain])
    });
    Some(if elsewhere { Value::unknown() } else { Value::of(Origin::Object("@found".into())) })
}

/// Batch processing is how many changes are made at once; the other states belong to loading and closing.
fn scene_state<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let batch = call.argument(0, &[]).is_some_and(|a| walker.text(a.node).ends_with(".BatchProcessState"));
    if !batch {
        walker.note(call.node, Capability::Reflection, false);
    }
    Some(Value::plain())
}

/// Observers can be given as a function; text would be looked up as a method by name.
fn observer<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let by_name = call.argument(1, &[]).is_some_and(|a| matches!(a.value.origins(), [Origin::Text(_)]));
    if by_name {
        walker.note(call.node, Capability::Reflection, false);
    }
    Some(Value::plain())
}
