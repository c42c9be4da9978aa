#!/bin/sh
# Makes chat.svg, the picture in the README, from the real program: the chat with the demo model in a terminal of its
# own, asked two questions, of which python answers one; reasoning and code are unfolded.
set -eu
cd "$(dirname "$0")/../.."
go test ./ui/cli -count 1 -run TestPicture -args -picture "$PWD/docs/images/chat.svg"
