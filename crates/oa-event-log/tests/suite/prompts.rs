//! The events of prompts.

use oa_event_log::ConversationEvent;
use oa_types::{AudioBlock, ImageBlock, Message};

#[test]
fn prompt_brings_its_images_and_recordings() {
    let audio = |media_type| AudioBlock::from_base64("aGk=", media_type).unwrap();
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    let blocks =
        vec!["Listen.".into(), image.into(), audio("audio/wav").into(), audio("audio/mpeg").into()];
    let ConversationEvent::Prompt { text, images } =
        ConversationEvent::of_prompt(&Message::user_with_blocks(blocks))
    else {
        panic!("it is a prompt");
    };
    assert_eq!(text, "Listen.");
    let recordings = ["data:audio/wav;base64,aGk=", "data:audio/mp3;base64,aGk="];
    assert_eq!(images, ["https://host/a.png", recordings[0], recordings[1]]);

    let event = ConversationEvent::of_prompt(&Message::user_with_audio("", audio("audio/wav")));
    let images = vec![recordings[0].to_owned()];
    assert_eq!(event, ConversationEvent::Prompt { text: String::new(), images });
}
