#!/bin/sh
# An MCP server with one tool, report, whose result has 2,000 lines.
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      say "\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"long\",\"version\":\"1\"}}" ;;
    *'"method":"tools/list"'*)
      say "\"id\":$id,\"result\":{\"tools\":[{\"name\":\"report\",\"inputSchema\":{\"type\":\"object\"}}]}" ;;
    *'"method":"tools/call"'*)
      text=$(awk 'BEGIN { for (n = 1; n <= 2000; n++) printf "line %d of the report\\n", n }')
      say "\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}" ;;
  esac
done
