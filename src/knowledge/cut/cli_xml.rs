//! Command-line modules by their XML: one passage a module, with every parameter a Python program can set.

use roxmltree::{Document, Node};

use super::{MOST_TOKENS, Passage, Words, stem, tokens_of};

/// The module's passage; parameters beyond the limit go to a second one. Nothing for XML of another sort.
pub fn passages(path: &str, text: &str) -> Vec<Passage> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let root = document.root_element();
    if root.tag_name().name() != "executable" {
        return Vec::new();
    }
    let title = child_text(root, "title");
    let line = |node: Node<'_, '_>| document.text_pos_at(node.range().start).row as usize;
    let end_line = |node: Node<'_, '_>| document.text_pos_at(node.range().end).row as usize;
    let head = format!("{title} (command-line module {})\n{}\n", stem(path), child_text(root, "description"));
    let parameters: Vec<Node<'_, '_>> = root
        .children()
        .filter(|node| node.has_tag_name("parameters"))
        .flat_map(|group| group.children())
        .filter(|node| node.is_element() && !child_text(*node, "name").is_empty())
        .collect();
    let mut found = Vec::new();
    let mut passage = start(path, &title, &head, 1);
    for node in parameters {
        let (name, label) = (child_text(node, "name"), child_text(node, "label"));
        let default = Some(child_text(node, "default")).filter(|text| !text.is_empty());
        let default = default.map(|text| format!(" = {text}")).unwrap_or_default();
        let kind = node.tag_name().name();
        let entry = format!("{name} ({kind}{default}): {label}. {}\n", child_text(node, "description"));
        if tokens_of(&passage.text) + tokens_of(&entry) > MOST_TOKENS {
            let next = start(path, &title, &head, line(node));
            found.push(std::mem::replace(&mut passage, next));
        }
        passage.words.prose.push_str(&format!("{label} {} ", child_text(node, "description")));
        passage.words.code.push_str(&format!("{name} {kind} "));
        passage.text.push_str(&entry);
        passage.declares.push(name);
        passage.end_line = end_line(node);
    }
    found.push(passage);
    found
}

fn start(path: &str, title: &str, head: &str, line: usize) -> Passage {
    let words = Words {
        title: format!("{title} {}", stem(path)),
        context: "command line module CLI".into(),
        prose: head.to_owned(),
        code: String::new(),
    };
    let name = format!("CLI module › {title}");
    Passage {
        language: "xml",
        name,
        start_line: line,
        end_line: line,
        text: head.to_owned(),
        declares: Vec::new(),
        words,
    }
}

/// The text of the first child of this name, on one line.
fn child_text(node: Node<'_, '_>, name: &str) -> String {
    let child = node.children().find(|child| child.has_tag_name(name));
    let text = child.and_then(|child| child.text()).unwrap_or("");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects that a module is found by its words and shows what can be set.
    #[test]
    fn a_module_shows_its_parameters() {
        let xml = "<executable><title>Add Two</title><description>Adds volumes</description><parameters>\n<label>IO</label>\n<image><name>inputOne</name><label>Input one</label><default>x</default></image>\n</parameters></executable>";
        let found = passages("Modules/CLI/AddTwo/AddTwo.xml", xml);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("inputOne (image = x): Input one"), "{}", found[0].text);
        assert_eq!(found[0].words.title, "Add Two AddTwo");
        assert!(passages("x.xml", "<other/>").is_empty());
    }
}
