package assets

// The demo model: a tiny gpt-oss checkpoint that lets every verb run before anything is downloaded.
// Package models unpacks and checks it; assets/demo/README.md is its model card.

import _ "embed"

// DemoConfig is the demo's config.json.
//
//go:embed demo/config.json
var DemoConfig []byte

// DemoGenerationConfig is the demo's generation_config.json.
//
//go:embed demo/generation_config.json
var DemoGenerationConfig []byte
