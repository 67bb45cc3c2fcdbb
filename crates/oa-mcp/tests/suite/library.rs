//! Resources and prompts, for the program and for the model; names and pins of tools.

use oa_mcp::{Connected, ErrorKind, Pins, ResourceData};
use oa_tools::ToolContext;
use oa_types::Message;
use serde_json::json;

use crate::support::{connect, scripted, tool, with_limits};

fn names(connected: &Connected) -> Vec<String> {
    connected.tools().iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn resources_and_templates_are_read() {
    let connected = connect(scripted("library")).await.unwrap();
    let connection = connected.connection("s").unwrap();
    let resources = connection.resources().await.unwrap();
    let uris: Vec<_> = resources.iter().map(|resource| &*resource.uri).collect();
    assert_eq!(uris, ["a://b", "a://c"], "both pages, less what has no URI");
    assert_eq!(
        (resources[1].size, resources[1].mime_type.as_deref()),
        (Some(3), Some("image/png"))
    );
    let templates = connection.resource_templates().await.unwrap();
    assert_eq!(templates[0].uri, "a://{letter}");
    let text = connection.read_resource("a://b").await.unwrap();
    assert_eq!((text.len(), text[0].text()), (1, Some("inside")));
    let image = connection.read_resource("a://c").await.unwrap();
    assert_eq!(image[0].data, ResourceData::Blob("QUJD".to_owned()));
    assert!(image[0].image().is_some());
    let missing = connection.read_resource("a://d").await.unwrap_err();
    assert_eq!((missing.kind(), missing.code()), (ErrorKind::Rejected, Some(-32002)));
    assert_eq!(missing.to_string(), "s: no such resource");
    let shapeless = connection.read_resource("a://shapeless").await.unwrap_err();
    assert_eq!(shapeless.to_string(), "s: the answer has no contents of a resource: []");
    assert_eq!(names(&connected), ["s__do", "s__echo"], "no tools unless asked for");
    connected.close().await;

    // A server without them has none.
    let connected = connect(scripted("plain").resource_tools()).await.unwrap();
    let connection = connected.connection("s").unwrap();
    assert_eq!(connection.resources().await.unwrap(), []);
    assert_eq!(connection.prompts().await.unwrap(), []);
    assert_eq!(names(&connected), ["s__do", "s__echo"]);
    connected.close().await;
}

#[tokio::test]
async fn lists_are_bounded() {
    let server = scripted("library").limits(with_limits(|limits| limits.entries = 1));
    let connected = connect(server).await.unwrap();
    let connection = connected.connection("s").unwrap();
    assert_eq!(connection.resources().await.unwrap().len(), 1);
    assert_eq!(connection.warnings(), ["more than 1 resources; later ones are left out"]);
    connected.close().await;
    let server = scripted("library").limits(with_limits(|limits| limits.message_bytes = 600));
    let connected = connect(server).await.unwrap();
    let long = connected.connection("s").unwrap().resources().await;
    let long = long.map(|resources| resources.len()).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::Limit);
    connected.close().await;
    let server = scripted("library").limits(with_limits(|limits| limits.pages = 1));
    let connected = connect(server).await.unwrap();
    let connection = connected.connection("s").unwrap();
    assert_eq!(connection.resources().await.unwrap().len(), 1);
    let rest = "the list of resources has more than 1 pages; the rest is left out";
    assert_eq!(connection.warnings(), [rest]);
    connected.close().await;
}

#[tokio::test]
async fn prompts_are_filled_in() {
    let connected = connect(scripted("library")).await.unwrap();
    let connection = connected.connection("s").unwrap();
    let prompts = connection.prompts().await.unwrap();
    assert_eq!((&*prompts[0].name, prompts[0].arguments[0].is_required), ("greet", true));
    let filled = connection.get_prompt("greet", [("who", "Ada")]).await.unwrap();
    assert_eq!(filled.description.as_deref(), Some("Greets"));
    assert_eq!(filled.messages[0], Message::user("Greet Ada."));
    assert_eq!(filled.messages[1].content.len(), 1);
    connected.close().await;
}

#[tokio::test]
async fn resource_tools_read_for_the_model() {
    let connected = connect(scripted("library").resource_tools()).await.unwrap();
    assert_eq!(names(&connected), ["s__do", "s__echo", "s__list_resources", "s__read_resource"]);
    let list = tool(&connected, "s__list_resources").unwrap();
    let listed = list.execute(json!({})).await.unwrap();
    let expected = json!([
        { "uri": "a://b", "name": "b", "description": "The letter" },
        { "uri": "a://c", "name": "c", "mimeType": "image/png" },
        { "uriTemplate": "a://{letter}", "name": "letters" },
    ]);
    assert_eq!(listed, expected);
    let read = tool(&connected, "s__read_resource").unwrap();
    assert!(read.prepare(json!({})).is_err());
    assert_eq!(read.execute(json!({ "uri": "a://b" })).await.unwrap(), json!("[a://b]\ninside"));
    let cx = ToolContext::new("c", "t");
    assert_eq!(read.call(json!({ "uri": "a://c" }), cx.clone()).await.unwrap(), json!("[a://c]"));
    assert_eq!(cx.take_images().len(), 1);
    let missing = read.execute(json!({ "uri": "a://d" })).await.unwrap_err();
    assert_eq!(missing.to_string(), "no such resource (code -32002)");
    connected.close().await;
}

#[tokio::test]
async fn renamed_tool_is_called_by_its_raw_name() {
    let connected = connect(scripted("plain").rename("echo", "say it")).await.unwrap();
    let all = names(&connected);
    assert_eq!(all[0], "s__do");
    assert!(all[1].starts_with("s__say_it_"), "{all:?}");
    let said = connected.tools()[1].execute(json!({ "text": "hello" })).await.unwrap();
    assert_eq!(said, json!("hello"));
    connected.close().await;
    let twice = connect(scripted("plain").rename("echo", "do")).await.unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Config);
    assert_eq!(twice.to_string(), "s: two tools have the name s__do: echo and do");
}

#[tokio::test]
async fn changed_tool_waits_for_confirmation() {
    // On first use, what is there is pinned; without pins, nothing is.
    let unpinned = connect(scripted("plain")).await.unwrap();
    assert_eq!(unpinned.connection("s").unwrap().pins(), None);
    unpinned.close().await;
    let first = connect(scripted("plain").pins(Pins::new())).await.unwrap();
    let pins = first.connection("s").unwrap().pins().unwrap();
    assert_eq!(pins.tools().collect::<Vec<_>>(), ["do", "echo"]);
    assert_eq!(names(&first), ["s__do", "s__echo"]);
    first.close().await;

    // They are plain data.
    let kept = serde_json::to_string(&pins).unwrap();
    let pins: Pins = serde_json::from_str(&kept).unwrap();
    let same = connect(scripted("plain").pins(pins.clone())).await.unwrap();
    assert_eq!(names(&same), ["s__do", "s__echo"]);
    assert_eq!(same.connection("s").unwrap().unconfirmed(), []);
    same.close().await;

    let other = connect(scripted("changed").pins(pins.clone())).await.unwrap();
    let connection = other.connection("s").unwrap();
    assert_eq!(names(&other), ["s__echo"]);
    let waiting = connection.unconfirmed();
    let told: Vec<_> = waiting.iter().map(|tool| (&*tool.tool, tool.is_changed)).collect();
    assert_eq!(told, [("do", true), ("new", false)]);
    assert_eq!(waiting[0].description, "Other tool do");
    let warning = "the tool do is left out until it is confirmed: it differs from its pin";
    assert!(connection.warnings().contains(&warning.to_owned()), "{:?}", connection.warnings());
    assert_eq!(connection.pins(), Some(pins.clone()), "nothing is pinned by itself");

    connection.confirm(&waiting[0]).await.unwrap();
    assert_eq!(names(&other), ["s__do", "s__echo"]);
    other.changed().await;
    let now = connection.pins().unwrap();
    assert_ne!(now, pins);
    let error = connection.confirm(&waiting[0]).await.unwrap_err();
    assert_eq!(error.to_string(), "s: no tool do is waiting to be confirmed");
    other.close().await;
    // What was confirmed holds for the next connection.
    let next = connect(scripted("changed").pins(now)).await.unwrap();
    assert_eq!(names(&next), ["s__do", "s__echo"]);
    next.close().await;
}
