//! The names in `llms.txt`, and the list of the manual's pages.

use std::collections::HashSet;

use crate::{files, read};

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[test]
fn llms_txt_names_only_public_items() {
    let page = read("crates/open-agent/llms.txt");
    let api = read("crates/open-agent/api.txt");
    let public: HashSet<&str> = words(&api).collect();
    let table = page.split_once("## More names").expect("the section is there").1;
    let mut count = 0;
    for code in table.split('`').skip(1).step_by(2) {
        for name in words(code) {
            assert!(public.contains(name), "`{name}` in `{code}`");
            count += 1;
        }
    }
    assert!(count > 50, "{count} names");
}

#[test]
fn every_guide_page_is_linked() {
    let contents = read("crates/open-agent/src/guide/contents.md");
    let front = read("crates/open-agent/src/lib.rs");
    let readme = read("README.md");
    for file in files("crates/open-agent/src/guide", ".md") {
        assert!(front.contains(&format!("guide/{file}")), "{file} is no module");
        assert!(file == "contents.md" || readme.contains(&format!("guide/{file}")), "{file}");
        let page = file.trim_end_matches(".md");
        assert!(file == "contents.md" || contents.contains(&format!("`{page}`")), "{page}");
    }
}

#[test]
fn the_readme_shows_the_measured_table() {
    let results = read("xtask/peers/results/README.md");
    let table = results.lines().skip_while(|line| !line.starts_with('|'));
    let table: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    assert!(table.len() > 5, "{table:?}");
    let readme = read("README.md");
    assert!(readme.contains(&table.join("\n")), "README.md should show:\n\n{}", table.join("\n"));
    for image in files("xtask/peers/results", "-light.svg") {
        let dark = image.replace("-light", "-dark");
        let shown =
            [&image, &dark].map(|name| readme.contains(&format!("xtask/peers/results/{name}")));
        assert!(shown == [true, true], "{image}");
    }
}
