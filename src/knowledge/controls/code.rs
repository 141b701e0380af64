//! What C++ and Python beside a form say of its controls: connections, handlers and what those call.
//!
//! By patterns over lines and not by a syntax tree: the sixteen megabytes of widget code are only asked for a few shapes
//! that look the same everywhere, and a wrong guess costs a missing link, no more.

use std::sync::LazyLock;

use regex::Regex;

use super::{Connection, Facts, Function, Item, form::clean};

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($text).ok());
    };
}

pattern!(
    CONNECT_OLD,
    r"connect\(\s*&?(?:[\w.]+(?:\(\))?(?:->|\.))*(\w+)(?:\(\))?\s*,\s*SIGNAL\(\s*(\w+)[^;]*?SLOT\(\s*(\w+)"
);
pattern!(
    CONNECT_NEW,
    r"connect\(\s*&?(?:[\w.]+(?:\(\))?(?:->|\.))*(\w+)(?:\(\))?\s*,\s*(?:QOverload<[^>]*>::of\()?&\w+::(\w+)\)?\s*,\s*[^;]*?&\w+::(\w+)"
);
pattern!(CONNECT_LAMBDA, r"connect\(\s*(?:\w+(?:->|\.))*(\w+)\s*,\s*&\w+::(\w+)\s*,[^;]*?\[[^\]]*\]");
pattern!(PYTHON_NEW, r"(?m)\.?(\w+)\.(\w+)\.connect\(\s*(.+?)\)\s*$");
pattern!(PYTHON_OLD, r#"(?m)\.?(\w+)\.connect\(\s*["'](\w+)[^"']*["']\s*,\s*(.+?)\)\s*$"#);
pattern!(DEFAULT_ACTION, r"(\w+)->setDefaultAction\(\s*(?:\w+(?:->|\.))*(\w+)\s*\)");
pattern!(CPP_FUNCTION, r"(?m)^[\w][\w:<>*&, \t]*?\b(\w+)::(~?\w+)\s*\(");
pattern!(PYTHON_FUNCTION, r"(?m)^(\s*)def\s+(\w+)\s*\(");
pattern!(PYTHON_CLASS, r"(?m)^class\s+(\w+)");
pattern!(CALL, r"(?:->|\.|::)\s*(\w+)\s*\(");
pattern!(OBJECT, r"(?:d->|this->|self\.ui\.|ui->|self\.)(\w+)");
pattern!(
    MADE_CPP,
    r#"(\w+)\s*=\s*new\s+(Q(?:Action|Menu|PushButton|CheckBox|ToolButton|RadioButton|GroupBox))\s*\([^;]*?"((?:[^"\\]|\\.)+)""#
);
pattern!(TEXT_CPP, r#"(\w+)->set(Text|ToolTip)\(\s*(?:[\w:]*tr\()?\s*"((?:[^"\\]|\\.)+)""#);
pattern!(MADE_PYTHON, r#"(\w+)\s*=\s*(?:qt|ctk)\.((?:Q|ctk)\w+)\(\s*(?:_\()?\s*["']([^"'\n]+)["']"#);
pattern!(ROW_PYTHON, r#"addRow\(\s*(?:_\()?\s*["']([^"'\n]+)["']\)?\s*,\s*(?:self\.)?(\w+)\)"#);
pattern!(TIP_PYTHON, r#"(\w+)\.(?:setToolTip\(|toolTip\s*=)\s*(?:_\()?\s*["']([^"'\n]+)["']"#);
pattern!(FORM_USE, r#"ui_(\w+)\.h|UI/(\w+)\.ui"#);

/// Calls that say nothing of what a control is for.
const EMPTY_CALLS: &[&str] = &[
    "connect",
    "blockSignals",
    "tr",
    "SafeDownCast",
    "GetPointer",
    "data",
    "isNull",
    "toStdString",
    "toUtf8",
    "toLatin1",
    "size",
    "begin",
    "end",
    "c_str",
    "GetID",
    "GetName",
    "qvtkConnect",
    "qvtkReconnect",
    "setEnabled",
    "setVisible",
    "mrmlScene",
    "GetNodeByID",
    "StartModify",
    "EndModify",
    "Superclass",
    "information",
    "warning",
    "critical",
    "currentNode",
];

/// The facts of a C++ or Python file; nothing when it has no connection and makes no control.
pub fn facts(path: &str, text: &str) -> Facts {
    let python = path.ends_with(".py");
    let mut facts = Facts::default();
    if !text.contains("connect(") && !text.contains("void ") && !text.contains("ui.") {
        return facts;
    }
    for found in captures(&FORM_USE, text) {
        let name = found.get(1).or_else(|| found.get(2)).map_or("", |name| name.as_str()).to_owned();
        if !facts.forms.contains(&name) {
            facts.forms.push(name);
        }
    }
    if python {
        python_connections(text, &mut facts)
    } else {
        cpp_connections(text, &mut facts)
    }
    made(text, python, &mut facts.items);
    if facts.is_empty() && facts.forms.is_empty() {
        return Facts::default();
    }
    facts.functions = if python { python_functions(text) } else { cpp_functions(text) };
    facts.functions.retain(|function| !function.calls.is_empty());
    facts
}

fn captures<'t>(pattern: &'static LazyLock<Option<Regex>>, text: &'t str) -> impl Iterator<Item = regex::Captures<'t>> {
    pattern.iter().flat_map(move |pattern| pattern.captures_iter(text))
}

fn cpp_connections(text: &str, facts: &mut Facts) {
    for pattern in [&CONNECT_OLD, &CONNECT_NEW] {
        facts.connections.extend(captures(pattern, text).map(|found| Connection {
            object: found[1].to_owned(),
            signal: found[2].to_owned(),
            handler: found[3].to_owned(),
            calls: Vec::new(),
        }));
    }
    // A button that shows an action does what the action does.
    facts.aliases.extend(captures(&DEFAULT_ACTION, text).map(|found| (found[1].to_owned(), found[2].to_owned())));
    for found in captures(&CONNECT_LAMBDA, text) {
        let rest = found.get(0).map_or("", |all| text.get(all.end()..).unwrap_or(""));
        let body = rest.find("});").or_else(|| rest.find(';')).and_then(|end| rest.get(..end)).unwrap_or("");
        let (object, signal) = (found[1].to_owned(), found[2].to_owned());
        facts.connections.push(Connection { object, signal, handler: String::new(), calls: calls(body) });
    }
}

fn python_connections(text: &str, facts: &mut Facts) {
    for (pattern, old) in [(&PYTHON_NEW, false), (&PYTHON_OLD, true)] {
        for found in captures(pattern, text) {
            let target = found[3].trim();
            if !old && matches!(&found[1], "ui" | "self") {
                continue;
            }
            let inline = target.starts_with("lambda");
            let handler = if inline { "" } else { target.rsplit('.').next().unwrap_or(target) };
            let handler = handler.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            facts.connections.push(Connection {
                object: found[1].to_owned(),
                signal: found[2].to_owned(),
                handler: handler.to_owned(),
                calls: if inline { calls(target) } else { Vec::new() },
            });
        }
    }
}

/// Controls that code makes with a text, and texts that it gives later.
fn made(text: &str, python: bool, items: &mut Vec<Item>) {
    let line = |found: &regex::Captures<'_>| {
        let at = found.get(0).map_or(0, |all| all.start());
        text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    };
    let pattern = if python { &MADE_PYTHON } else { &MADE_CPP };
    for found in captures(pattern, text) {
        let Some(label) = clean(&found[3]) else { continue };
        if &found[2] == "QLabel" {
            continue;
        }
        items.push(Item {
            object: found[1].to_owned(),
            class: found[2].to_owned(),
            label,
            line: line(&found),
            ..Item::default()
        });
    }
    if python {
        for found in captures(&ROW_PYTHON, text) {
            let Some(label) = clean(&found[1]) else { continue };
            items.push(Item { object: found[2].to_owned(), label, line: line(&found), ..Item::default() });
        }
        for found in captures(&TIP_PYTHON, text) {
            if let (Some(item), Some(tip)) = (items.iter_mut().find(|item| item.object == found[1]), clean(&found[2])) {
                item.tooltip = tip;
            }
        }
        return;
    }
    for found in captures(&TEXT_CPP, text) {
        let Some(words) = clean(&found[3]) else { continue };
        let known = items.iter_mut().find(|item| item.object == found[1]);
        match (known, &found[2]) {
            (Some(item), "ToolTip") => item.tooltip = words,
            (Some(item), _) if item.label.is_empty() => item.label = words,
            (None, "Text") => items.push(Item {
                object: found[1].to_owned(),
                class: String::new(),
                label: words,
                line: line(&found),
                ..Item::default()
            }),
            _ => {}
        }
    }
}

/// Functions of C++ by the shape that Slicer's style gives them: the closing brace stands in the first column.
fn cpp_functions(text: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for found in captures(&CPP_FUNCTION, text) {
        let start = found.get(0).map_or(0, |all| all.end());
        let Some(body) = text.get(start..) else { continue };
        let body = body.find("\n}").and_then(|end| body.get(..end)).unwrap_or(body);
        functions.push(function(found[1].trim_end_matches("Private").to_owned(), found[2].to_owned(), body));
    }
    functions
}

fn python_functions(text: &str) -> Vec<Function> {
    let classes: Vec<(usize, String)> = captures(&PYTHON_CLASS, text)
        .map(|found| (found.get(0).map_or(0, |all| all.start()), found[1].to_owned()))
        .collect();
    let starts: Vec<(usize, usize, String)> = captures(&PYTHON_FUNCTION, text)
        .map(|found| {
            (found.get(0).map_or(0, |all| all.start()), found.get(0).map_or(0, |all| all.end()), found[2].to_owned())
        })
        .collect();
    let mut functions = Vec::new();
    for (index, (start, body_start, name)) in starts.iter().enumerate() {
        let next_class = classes.iter().map(|(at, _)| *at).find(|at| at > start).unwrap_or(text.len());
        let end = starts.get(index + 1).map_or(text.len(), |next| next.0).min(next_class);
        let class = classes.iter().rev().find(|(at, _)| at < start).map_or("", |(_, name)| name);
        functions.push(function(class.to_owned(), name.clone(), text.get(*body_start..end).unwrap_or("")));
    }
    functions
}

fn function(class: String, name: String, body: &str) -> Function {
    let mut beside = Vec::new();
    for line in body.lines() {
        let on_line = calls(line);
        for found in captures(&OBJECT, line) {
            let object = found[1].to_owned();
            beside.extend(
                on_line
                    .iter()
                    .filter(|call| call.starts_with(char::is_uppercase))
                    .map(|call| (object.clone(), call.clone())),
            );
        }
    }
    beside.dedup();
    beside.truncate(200);
    Function { class, name, calls: calls(body), beside }
}

/// The methods that a piece of code calls, in order, each once.
fn calls(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for call in captures(&CALL, code) {
        let name = &call[1];
        if !EMPTY_CALLS.contains(&name) && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found.truncate(40);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the shapes of connections in C++: old, new, and with code in place.
    #[test]
    fn connections_of_cpp_are_read() {
        let code = "#include \"ui_qThing.h\"\nvoid qThing::setup()\n{\n  this->connect(d->Apply, SIGNAL(clicked()), this, SLOT(onApply()));\n  connect(d->Box, &QCheckBox::toggled, this, &qThing::onBox);\n  connect(d->Fit, &QPushButton::clicked, this, [=]() { d->Logic->FitAll(); });\n  d->Menu = new QAction(tr(\"Jump slices\"), this);\n}\n\nvoid qThing::onApply()\n{\n  d->Node->SetSize(2);\n}\n";
        let facts = facts("qThing.cxx", code);
        let seen: Vec<(&str, &str)> =
            facts.connections.iter().map(|c| (c.object.as_str(), c.handler.as_str())).collect();
        assert_eq!(seen, [("Apply", "onApply"), ("Box", "onBox"), ("Fit", "")]);
        assert_eq!(facts.connections[2].calls, ["FitAll"]);
        let handler = facts.functions.iter().find(|f| f.name == "onApply").expect("handler");
        assert_eq!((handler.class.as_str(), handler.calls.as_slice()), ("qThing", ["SetSize".to_owned()].as_slice()));
        assert_eq!((facts.items[0].object.as_str(), facts.items[0].label.as_str()), ("Menu", "Jump slices"));
        assert_eq!(facts.forms, ["qThing"]);
    }

    /// Protects the shapes of connections in Python.
    #[test]
    fn connections_of_python_are_read() {
        let code = "class W:\n    def setup(self):\n        self.ui.apply.clicked.connect(self.onApply)\n        self.ui.box.connect('toggled(bool)', self.onBox)\n        self.button = qt.QPushButton(\"Fit all\")\n\n    def onApply(self):\n        self.logic.process(self.node)\n";
        let facts = facts("W.py", code);
        let seen: Vec<(&str, &str, &str)> =
            facts.connections.iter().map(|c| (c.object.as_str(), c.signal.as_str(), c.handler.as_str())).collect();
        assert_eq!(seen, [("apply", "clicked", "onApply"), ("box", "toggled", "onBox")]);
        assert_eq!(facts.items[0].label, "Fit all");
        assert!(facts.functions.iter().any(|f| f.name == "onApply" && f.calls == ["process"]));
    }
}
