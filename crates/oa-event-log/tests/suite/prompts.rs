//! The events of prompts.

use oa_event_log::ConversationEvent;
use oa_types::{AudioBlock, ImageBlock, Message};

#[test]
fn prompt_names_its_recordings() {
    let audio = |media_type| AudioBlock::from_base64("aGk=", media_type).unwrap();
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    let blocks =
        vec!["Listen.".into(), image.into(), audio("audio/wav").into(), audio("audio/mpeg").into()];
    let ConversationEvent::Prompt { text, images } =
        ConversationEvent::of_prompt(&Message::user_with_blocks(blocks))
    else {
        panic!("it is a prompt");
    };
    assert_eq!(text, "Listen.\n[audio: wav]\n[audio: mp3]");
    assert_eq!(images, ["https://host/a.png"]);

    let event = ConversationEvent::of_prompt(&Message::user_with_audio("", audio("audio/wav")));
    let expected = ConversationEvent::Prompt { text: "[audio: wav]".into(), images: Vec::new() };
    assert_eq!(event, expected);
}
