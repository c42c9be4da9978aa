package request_test

import (
	"encoding/base64"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
	"github.com/ossrun/ossrun/runtime/tools/pdf/pdftest"
)

// Text files are read as text; images are refused in one sentence, or left out if so configured.
func TestInputFiles(t *testing.T) {
	data := base64.StdEncoding.EncodeToString([]byte("Täxt."))
	for path, input := range map[string]string{
		"/v1/responses": `"input":[{"role":"user","content":[{"type":"input_text","text":"Read: "},` +
			`{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,` + data +
			`"}]}]`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":[{"type":"text","text":"Read: "},` +
			`{"type":"file","file":{"filename":"a.txt","file_data":"` + data + `"}}]}]`,
	} {
		srv, f := porttest.Server(t, sessiontest.Answers("ok"))
		porttest.Post(t, srv, path, `{`+input+`}`)
		if got := sessiontest.History(f.Last(t)); got != "user: Read: a.txt:\nTäxt." {
			t.Errorf("%s: %q", path, got)
		}
	}
	binary := base64.StdEncoding.EncodeToString([]byte("\xff"))
	broken := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4 and no more"))
	document := base64.StdEncoding.EncodeToString(pdftest.Document("One line", "Page two"))
	for path, input := range map[string]string{
		"/v1/responses": `"input":[{"role":"user","content":[{"type":"input_file","filename":` +
			`"a.pdf","file_data":"data:application/pdf;base64,` + document + `"}]}]`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":[{"type":"file","file":` +
			`{"filename":"a.pdf","file_data":"` + document + `"}}]}]`,
		"/v1/messages": `"max_tokens":9,"messages":[{"role":"user","content":[{"type":"document",` +
			`"title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"` +
			document + `"}}]}]`,
	} {
		srv, f := porttest.Server(t, sessiontest.Answers("ok"))
		porttest.Post(t, srv, path, `{`+input+`}`)
		if got := sessiontest.History(f.Last(t)); got != "user: a.pdf:\n[page 1]\nOne line\n\n[page 2]\nPage two" {
			t.Errorf("%s: %q", path, got)
		}
	}
	for part, want := range map[string]string{
		`{"type":"input_file","file_data":"` + broken + `"}`: "damaged",
		`{"type":"input_file","file_data":"` + binary + `"}`: "text only",
		`{"type":"input_file","file_data":"#"}`:              "not base64",
		`{"type":"input_file","file_id":"file_1"}`:           "send its text",
		`{"type":"input_image","image_url":"data:"}`:         "text only",
	} {
		srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":[{"role":"user","content":[`+part+
			`]}]}`)
		param, _ := porttest.At(porttest.Decode(t, r.Body), "error", "param").(string)
		code, _ := porttest.At(porttest.Decode(t, r.Body), "error", "code").(string)
		porttest.WantFault(t, r, 400, fields.KindInvalid, param, code, want)
	}
	srv, f := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.IgnoreImages = true })
	porttest.Post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":[`+
		`{"type":"input_text","text":"Look: "},{"type":"input_image","image_url":"data:"}]}]}`)
	if got := sessiontest.History(f.Last(t)); got != "user: Look: \n[an image is attached; this model "+
		"reads text only]" {
		t.Errorf("%q", got)
	}
}
