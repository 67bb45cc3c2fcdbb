#!/bin/sh
# A server of MCP for the tests, of one line a message. $1 is a file that gets a line for each cancellation. With $2, it
# has no handshake, and asks in the place of a result.
more= visited=
number() { printf '%s' "$1" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p'; }
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
text() { result "$1" '{"content":[{"type":"text","text":"'"$2"'"}]}'; }
# Asks, and sets `answer` to the line that comes back.
ask() {
  printf '{"jsonrpc":"2.0","id":"q","method":"%s","params":%s}\n' "$1" "$2"
  IFS= read -r answer
}
while IFS= read -r line; do
  id=$(number "$line")
  case $2$line in
  rounds*'"method":"initialize"'*)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
  rounds*'"method":"server/discover"'*)
    result "$id" '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
  rounds*'"method":"tools/call"'*'"inputResponses"'*)
    case $line in
    *'"decline"'*) text "$id" "the person declines" ;;
    *'"color"'*) text "$id" "the person says $(printf '%s' "$line" | sed -n 's/.*"color":"\([^"]*\)".*/\1/p')" ;;
    *) text "$id" "the model says $(printf '%s' "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')" ;;
    esac ;;
  rounds*'"method":"tools/call"'*'"model"'*)
    result "$id" '{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Which color?"}}],"systemPrompt":"You paint.","maxTokens":50}}}}' ;;
  rounds*'"method":"tools/call"'*'"person"'*)
    result "$id" '{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Which color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string"}}}}}}}' ;;
  *'"method":"initialize"'*)
    result "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sh","version":"1"}}' ;;
  *'"method":"tools/list"'*)
    result "$id" '{"tools":[{"name":"run","inputSchema":{"type":"object"}}'"$more"']}' ;;
  *'"method":"notifications/cancelled"'*) echo cancelled >> "$1" ;;
  *'"method":"tools/call"'*'"model"'*)
    ask sampling/createMessage '{"messages":[{"role":"user","content":{"type":"text","text":"Which color?"}}],"systemPrompt":"You paint.","maxTokens":50}'
    case $answer in
    *'"error"'*) text "$id" "refused: $(printf '%s' "$answer" | sed -n 's/.*"message":"\([^"]*\)".*/\1/p')" ;;
    *) text "$id" "the model says $(printf '%s' "$answer" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')" ;;
    esac ;;
  *'"method":"tools/call"'*'"person"'*)
    ask elicitation/create '{"message":"Which color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string"}}}}'
    case $answer in
    *'"error"'*) text "$id" "refused: $(printf '%s' "$answer" | sed -n 's/.*"message":"\([^"]*\)".*/\1/p')" ;;
    *) text "$id" "the person says $(printf '%s' "$answer" | sed -n 's/.*"color":"\([^"]*\)".*/\1/p')" ;;
    esac ;;
  *'"method":"tools/call"'*'"page"'*)
    page='{"mode":"url","elicitationId":"e","url":"https://example.org/sign-in","message":"Sign in"}'
    if test -z "$visited"; then
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"sign in","data":{"elicitations":[%s]}}}\n' "$id" "$page"
      echo '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}'
    else
      text "$id" "visited"
    fi
    visited=1 ;;
  *'"method":"tools/call"'*'"grow"'*)
    more=',{"name":"grown","inputSchema":{"type":"object"}}'
    echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    text "$id" "grown" ;;
  *'"method":"tools/call"'*'"silence"'*) ;;
  *'"method":"tools/call"'*) text "$id" "done" ;;
  esac
done
