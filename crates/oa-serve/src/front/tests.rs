use super::*;

/// The parts of three protocols. The name of a type says little: browsers know no type for most files of text.
#[test]
fn text_of_attached_files_reaches_the_model() {
    let of_url = |kind: &str, url: &str| json!({"type": "file", "filename": "a.md", "mediaType": kind, "url": url});
    let of_data = |kind: &str, data: &str| json!({"type": "document", "source": {"type": "data", "value": data, "mimeType": kind}});
    let shown = |name: &str| format!("[{name} was attached:]\n# Hä\n[the end of {name}]\n");
    let data = "IyBIw6Q=";
    for (part, name) in [
        (of_url("text/markdown", "data:text/markdown;base64,IyBIw6Q="), "a.md (text/markdown)"),
        (of_url("text/plain", "data:text/plain;charset=utf-8,%23%20H%C3%A4"), "a.md (text/plain)"),
        (of_url("", "data:application/octet-stream;base64,IyBIw6Q="), "a.md (file)"),
        (of_data("text/markdown", data), "a file (text/markdown)"),
        (json!({"type": "binary", "mimeType": "text/x", "data": data}), "a file (text/x)"),
        (
            json!({"type": "file", "file": {"filename": "a.md", "file_data": "data:;base64,IyBIw6Q="}}),
            "a.md (file)",
        ),
    ] {
        let expected = shown(name).replace(
            &format!("end of {name}"),
            &format!("end of {}", name.split(" (").next().expect("a name")),
        );
        assert_eq!(attached(&part).text, expected, "{part}");
        assert!(is_attached(&expected));
    }
    let pdf = "data:application/pdf;base64,JVBERi0=";
    for part in [
        of_url("application/pdf", pdf),
        of_url("application/zip", "data:application/zip;base64,UEsDBP//"),
        of_url("text/plain", "data:text/plain;base64,YQBi"),
        of_url("text/plain", "data:text/plain;base64,?"),
        of_url("text/plain", "data:text/plain,%FF"),
        of_url("text/plain", "data:text/plain"),
        of_url("text/plain", "https://a.example/a.txt"),
        of_url("text/plain", "files"),
        of_data("image/png", data),
        of_data("audio/wav", data),
        json!({"type": "document", "source": {"type": "url", "value": "data", "mimeType": "text/x"}}),
        json!({"type": "file", "file": {"file_id": "file-1"}}),
    ] {
        assert!(attached(&part).text.ends_with(" was attached, and cannot be shown]\n"), "{part}");
    }
}
