use proptest::prelude::*;

use super::*;

#[test]
fn every_command_of_the_list_is_known() {
    for (name, argument, _) in COMMANDS {
        let line = if argument.is_empty() { format!("/{name}") } else { format!("/{name} x") };
        assert!(matches!(parse(&line), Entered::Command(_)), "{line}");
    }
}

#[test]
fn paths_are_not_commands() {
    let model = Command::Model(Some("qwen3:8b".to_owned()));
    assert_eq!(parse("/model qwen3:8b"), Entered::Command(model));
    for path in ["/etc/hosts is what?", "/README.md is empty", "/**\n * Adds.\n */", "/my-data"] {
        assert_eq!(parse(path), Entered::Prompt(path.to_owned()));
    }
}

#[test]
fn a_space_makes_a_prompt_of_an_unknown_word() {
    let told =
        "unknown command /tmp; /help lists all; begin with a space to send the line to the model";
    assert_eq!(parse("/tmp is full, why?"), Entered::Unknown(told.to_owned()));
    assert_eq!(parse(" /tmp is full, why?\n"), Entered::Prompt(" /tmp is full, why?".to_owned()));
    assert_eq!(parse(" /quit"), Entered::Command(Command::Quit));
}

#[test]
fn wrong_commands_are_explained() {
    let meant = "unknown command /modle; did you mean /model?";
    assert_eq!(parse("/modle"), Entered::Unknown(meant.to_owned()));
    assert_eq!(parse("/save"), Entered::Unknown("/save needs a name: /save NAME".to_owned()));
    assert_eq!(parse("/clear all"), Entered::Unknown("/clear takes no argument".to_owned()));
    assert_eq!(
        parse("/xyzzy"),
        Entered::Unknown("unknown command /xyzzy; /help lists all".to_owned())
    );
    assert_eq!(parse("  "), Entered::Nothing);
    assert_eq!(parse("  indented\n  text  \n"), Entered::Prompt("  indented\n  text".to_owned()));
}

proptest! {
    #[test]
    fn lines_without_a_slash_are_prompts(text in "[^/ \t\r\n].{0,40}") {
        prop_assume!(!text.trim().is_empty() && !text.trim().starts_with('/'));
        prop_assert_eq!(parse(&text), Entered::Prompt(text.trim_end().to_owned()));
    }
}
