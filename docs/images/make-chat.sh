#!/bin/sh
# Makes chat.svg, the picture in the README, from the real program: it builds ossrun, starts the chat with the demo model
# in a terminal of its own, asks a question and draws the screen.
set -eu
cd "$(dirname "$0")/../.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/ossrun" .
go run ./ui/chat/picture -out docs/images/chat.svg -ask "${1:-What is the capital of France?}" "$bin/ossrun" chat --model demo
