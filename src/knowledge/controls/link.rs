//! Joins forms and code: which control runs which handler, and which API that calls.

use std::collections::{BTreeMap, HashMap};

use super::{Facts, Function, Item};

/// Longest list of API names that one control is told with.
const MOST_CALLS: usize = 16;

/// A control with what it does.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Control {
    /// File that defines it.
    pub path: String,
    pub line: usize,
    pub object: String,
    pub class: String,
    pub label: String,
    pub tooltip: String,
    pub group: String,
    pub signal: String,
    /// `Class.function` that runs when it is used.
    pub handler: String,
    /// What the handler calls, or what code reads and writes beside the control.
    pub calls: Vec<String>,
}

/// All controls of some files with their facts, in the order of the files.
pub fn join(files: &[(String, Facts)]) -> Vec<Control> {
    let mut by_form: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut by_folder: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, (path, facts)) in files.iter().enumerate() {
        if path.ends_with(".ui") {
            continue;
        }
        for form in &facts.forms {
            by_form.entry(form).or_default().push(index);
        }
        by_folder.entry(module_of(path)).or_default().push(index);
    }
    let mut controls = Vec::new();
    for (index, (path, facts)) in files.iter().enumerate() {
        let mut beside: Vec<usize> = Vec::new();
        if path.ends_with(".ui") {
            let names = facts.forms.iter().map(String::as_str).chain([stem(path)]);
            for name in names {
                beside.extend(by_form.get(name).into_iter().flatten());
            }
            if beside.is_empty() {
                beside.extend(by_folder.get(module_of(path)).into_iter().flatten());
            }
            beside.sort_unstable();
            beside.dedup();
        } else {
            beside.push(index);
        }
        for item in &facts.items {
            controls.push(control(path, item, facts, &beside, files));
        }
    }
    controls
}

/// The folder of the module that a file belongs to: above `Resources`.
fn module_of(path: &str) -> &str {
    let end = path.find("/Resources/").or_else(|| path.rfind('/')).unwrap_or(0);
    path.get(..end).unwrap_or("")
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

fn control(path: &str, item: &Item, own: &Facts, beside: &[usize], files: &[(String, Facts)]) -> Control {
    let mut control = Control {
        path: path.to_owned(),
        line: item.line,
        object: item.object.clone(),
        class: item.class.clone(),
        label: item.label.clone(),
        tooltip: item.tooltip.clone(),
        group: item.group.clone(),
        ..Control::default()
    };
    if item.object.is_empty() {
        return control;
    }
    let form_connections = own.connections.iter().filter(|_| path.ends_with(".ui"));
    for connection in form_connections.filter(|connection| connection.object == item.object) {
        control.signal.clone_from(&connection.signal);
        control.handler.clone_from(&connection.handler);
        add(&mut control.calls, connection.handler.rsplit('.').next().unwrap_or("").to_owned());
    }
    for (_, facts) in beside.iter().filter_map(|at| files.get(*at)) {
        let action = facts.aliases.iter().find(|(button, _)| *button == item.object).map(|(_, action)| action);
        let is_it = |object: &String| *object == item.object || Some(object) == action;
        for connection in facts.connections.iter().filter(|connection| is_it(&connection.object)) {
            if control.signal.is_empty() || control.handler.is_empty() {
                control.signal.clone_from(&connection.signal);
            }
            for call in &connection.calls {
                add(&mut control.calls, call.clone());
            }
            follow(&connection.handler, facts, &mut control);
        }
        // Qt connects functions of this name by itself.
        for function in &facts.functions {
            if let Some(signal) =
                function.name.strip_prefix("on_").and_then(|rest| rest.strip_prefix(item.object.as_str()))
                && let Some(signal) = signal.strip_prefix('_')
            {
                signal.clone_into(&mut control.signal);
                follow(&function.name, facts, &mut control);
            }
            for (_, call) in function.beside.iter().filter(|(object, _)| is_it(object)) {
                add(&mut control.calls, call.clone());
                if let Some(property) = call.strip_prefix("Get") {
                    add(&mut control.calls, format!("Set{property}"));
                }
            }
        }
    }
    if !item.parameter.is_empty() {
        add(&mut control.calls, item.parameter.clone());
    }
    control.calls.truncate(MOST_CALLS);
    control
}

/// Adds what a handler calls, through one level of functions of the same file.
fn follow(handler: &str, facts: &Facts, control: &mut Control) {
    if handler.is_empty() {
        return;
    }
    let named = |name: &str| facts.functions.iter().find(|function| function.name == name);
    let Some(found) = named(handler) else {
        if control.handler.is_empty() {
            handler.clone_into(&mut control.handler);
        }
        add(&mut control.calls, handler.to_owned());
        return;
    };
    control.handler =
        if found.class.is_empty() { found.name.clone() } else { format!("{}.{}", found.class, found.name) };
    for call in &found.calls {
        add(&mut control.calls, call.clone());
    }
    let inner: Vec<&Function> =
        found.calls.iter().filter_map(|call| named(call)).filter(|inner| inner.name != handler).collect();
    for call in inner.iter().flat_map(|inner| &inner.calls) {
        add(&mut control.calls, call.clone());
    }
}

fn add(calls: &mut Vec<String>, call: String) {
    if !call.is_empty() && !calls.contains(&call) {
        calls.push(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::controls::{code_facts, form_facts};

    const FORM: &str = r#"<ui><class>qThing</class><widget class="QWidget" name="qThing">
<widget class="QCheckBox" name="Fill"><property name="text"><string>Fill</string></property></widget>
<widget class="QPushButton" name="Go"><property name="text"><string>Go</string></property></widget></widget></ui>"#;
    const CODE: &str = "#include \"ui_qThing.h\"\nvoid qThing::setup()\n{\n  connect(d->Go, SIGNAL(clicked()), this, SLOT(onGo()));\n}\nvoid qThing::onGo()\n{\n  this->work(1);\n  d->Logic->DoIt();\n}\nvoid qThing::work(int n)\n{\n  d->Node->SetSize(n);\n}\nvoid qThing::update()\n{\n  d->Fill->setChecked(d->Node->GetFill());\n}\n";

    /// Protects the way from a label to the API: by a handler, through its helpers, and by what code shows in it.
    #[test]
    fn controls_lead_to_their_api() {
        let files = [
            ("M/Resources/UI/qThing.ui".to_owned(), form_facts(FORM)),
            ("M/qThing.cxx".to_owned(), code_facts("M/qThing.cxx", CODE)),
        ];
        let controls = join(&files);
        let go = controls.iter().find(|control| control.label == "Go").expect("Go");
        assert_eq!((go.handler.as_str(), go.signal.as_str()), ("qThing.onGo", "clicked"));
        assert_eq!(go.calls, ["work", "DoIt", "SetSize"]);
        let fill = controls.iter().find(|control| control.label == "Fill").expect("Fill");
        assert!(fill.calls.contains(&"SetFill".to_owned()), "{:?}", fill.calls);
    }
}
