//! The controls of a `.ui` file.

use roxmltree::{Document, Node};

use super::{Connection, Facts, Item};

/// Classes that hold others and are no control of their own.
const CONTAINERS: &[&str] =
    &["QWidget", "QFrame", "Line", "QStackedWidget", "QScrollArea", "QSplitter", "QDialog", "QMainWindow"];

/// The controls and connections of a form; nothing when it is not one.
pub fn facts(text: &str) -> Facts {
    let Ok(document) = Document::parse(text) else { return Facts::default() };
    let root = document.root_element();
    if root.tag_name().name() != "ui" {
        return Facts::default();
    }
    let mut facts = Facts::default();
    facts.forms.extend(
        root.children().find(|node| node.has_tag_name("class")).and_then(|node| node.text()).map(str::to_owned),
    );
    collect(root, &document, &mut Vec::new(), &mut facts.items, 0);
    lend_labels(root, &mut facts.items);
    for connection in root.descendants().filter(|node| node.has_tag_name("connection")) {
        let text = |name: &str| child(connection, name).and_then(|node| node.text()).unwrap_or("").to_owned();
        let name = |text: String| text.split('(').next().unwrap_or("").to_owned();
        let target = format!("{}.{}", text("receiver"), name(text("slot")));
        facts.connections.push(Connection {
            object: text("sender"),
            signal: name(text("signal")),
            handler: target,
            calls: Vec::new(),
        });
    }
    facts
}

fn collect(node: Node<'_, '_>, document: &Document<'_>, groups: &mut Vec<String>, items: &mut Vec<Item>, depth: usize) {
    if depth > 200 {
        return;
    }
    for child in node.children().filter(Node::is_element) {
        let tag = child.tag_name().name();
        let is_control = matches!(tag, "widget" | "action");
        let mut opened = false;
        if is_control {
            let class = child.attribute("class").unwrap_or(if tag == "action" { "QAction" } else { "" });
            let label = ["text", "title", "placeholderText", "windowTitle"]
                .iter()
                .find_map(|name| property(child, name))
                .unwrap_or_default();
            let page = ["title", "label"].iter().find_map(|name| attribute_text(child, name));
            let label = if label.is_empty() { page.unwrap_or_default() } else { label };
            let holds = child.children().any(|inner| matches!(inner.tag_name().name(), "layout" | "widget"));
            if !CONTAINERS.contains(&class) || !label.is_empty() && holds {
                items.push(Item {
                    object: child.attribute("name").unwrap_or("").to_owned(),
                    class: class.to_owned(),
                    label: label.clone(),
                    tooltip: property(child, "toolTip").unwrap_or_default(),
                    group: groups.join(" › "),
                    line: document.text_pos_at(child.range().start).row as usize,
                    parameter: property(child, "SlicerParameterName").unwrap_or_default(),
                });
            }
            if holds && !label.is_empty() {
                groups.push(label);
                opened = true;
            }
        }
        collect(child, document, groups, items, depth + 1);
        if opened {
            groups.pop();
        }
    }
}

/// A label next to a control tells what the control is for: by `buddy`, or by the same row of a form or grid layout.
fn lend_labels(root: Node<'_, '_>, items: &mut [Item]) {
    let mut lent: Vec<(String, String)> = Vec::new();
    for label in
        root.descendants().filter(|node| node.has_tag_name("widget") && node.attribute("class") == Some("QLabel"))
    {
        let Some(text) = property(label, "text").filter(|text| text.chars().any(char::is_alphabetic)) else { continue };
        let buddy = child(label, "property").and_then(|_| property_node(label, "buddy")).and_then(|node| node.text());
        if let Some(buddy) = buddy {
            lent.push((buddy.to_owned(), text));
            continue;
        }
        let Some(item) = label.parent().filter(|item| item.has_tag_name("item")) else { continue };
        let row = item.attribute("row");
        let following = item.next_siblings().skip(1).filter(|next| next.has_tag_name("item"));
        let same_row = following
            .take_while(|next| row.is_none() || next.attribute("row") == row)
            .take(if row.is_some() { 3 } else { 1 });
        for next in same_row {
            let named = next
                .descendants()
                .filter(|node| node.has_tag_name("widget") && node.attribute("class") != Some("QLabel"));
            lent.extend(
                named.take(3).filter_map(|node| node.attribute("name")).map(|name| (name.to_owned(), text.clone())),
            );
        }
    }
    for item in items.iter_mut().filter(|item| item.label.is_empty()) {
        if let Some((_, text)) = lent.iter().find(|(object, _)| *object == item.object) {
            item.label.clone_from(text);
        }
    }
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn property_node<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    let found =
        node.children().find(|child| child.has_tag_name("property") && child.attribute("name") == Some(name))?;
    found.children().find(Node::is_element)
}

fn property(node: Node<'_, '_>, name: &str) -> Option<String> {
    clean(property_node(node, name)?.text()?)
}

fn attribute_text(node: Node<'_, '_>, name: &str) -> Option<String> {
    let found =
        node.children().find(|child| child.has_tag_name("attribute") && child.attribute("name") == Some(name))?;
    clean(found.children().find(Node::is_element)?.text()?)
}

/// The words of a label or tooltip without mark-up and mnemonic.
pub(super) fn clean(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut inside = false;
    let marked = text.contains('<') && text.contains('>') && (text.contains("</") || text.contains("/>"));
    let mut style = false;
    for character in text.chars() {
        match character {
            '<' if marked => inside = true,
            '>' if marked => {
                inside = false;
                plain.push(' ');
            }
            '{' if marked => style = true,
            '}' if marked => style = false,
            '&' => {}
            other if !inside && !style => plain.push(other),
            _ => {}
        }
    }
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = plain.trim_end_matches(':').trim().to_owned();
    // Dots that open a dialog, and names of icons, are no words.
    let says = plain.chars().any(char::is_alphanumeric) && !plain.starts_with(":/");
    says.then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = r#"<ui version="4.0"><class>qThing</class><widget class="QWidget" name="qThing"><layout class="QVBoxLayout">
<item><widget class="ctkCollapsibleButton" name="Group"><property name="text"><string>Display</string></property>
<layout class="QGridLayout"><item row="0" column="0"><widget class="QLabel" name="L"><property name="text"><string>Glyph &amp;size:</string></property></widget></item>
<item row="0" column="1"><widget class="ctkSliderWidget" name="GlyphSize"><property name="toolTip"><string>&lt;b&gt;Size&lt;/b&gt; in mm</string></property></widget></item></layout></widget></item>
<item><widget class="QPushButton" name="Apply"><property name="text"><string>Apply</string></property></widget></item></layout></widget>
<connections><connection><sender>Apply</sender><signal>clicked()</signal><receiver>qThing</receiver><slot>apply()</slot></connection></connections></ui>"#;

    /// Protects labels, those lent by a neighbour too, groups, and that mark-up is taken off.
    #[test]
    fn controls_have_the_words_that_people_see() {
        let facts = facts(FORM);
        let slider = facts.items.iter().find(|item| item.object == "GlyphSize").expect("slider");
        assert_eq!(
            (slider.label.as_str(), slider.tooltip.as_str(), slider.group.as_str()),
            ("Glyph size", "Size in mm", "Display")
        );
        assert_eq!(slider.line, 4);
        assert_eq!(facts.connections[0].handler, "qThing.apply");
        assert!(super::facts("<not-a-form/>").is_empty() && super::facts("<").is_empty());
    }
}
