#!/bin/sh
# Makes chat.svg, the picture in the README, from the real program: it builds ossrun, starts the chat with the demo model
# in a terminal of its own (temperature 0), asks two questions, unfolds the reasoning (Ctrl+T) and draws the screen.
set -eu
cd "$(dirname "$0")/../.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/ossrun" .
go run ./ui/chat/picture -out docs/images/chat.svg -height 25 -keys '\x14' \
	-ask "What is ossrun?" -ask "How do I start the API server on port 8080?" "$bin/ossrun" chat --model demo --temperature 0
