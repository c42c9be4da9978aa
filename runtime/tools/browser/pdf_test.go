package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ossrun/ossrun/runtime/tools/pdf/pdftest"
)

// A PDF document is a page as others are: numbered, searched and cited by its lines.
func TestOpenPDF(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = w.Write(pdftest.Document("The Danube is long.", "The Inn is not."))
	}))
	t.Cleanup(s.Close)
	b := New(Options{Allow: thisHost})
	shows(t, b, "open", `{"id":"`+s.URL+`/rivers/list.pdf"}`, "[0] list.pdf", "L1: URL: ",
		"[page 1]", "The Danube is long.", "[page 2]", "The Inn is not.")
	shows(t, b, "find", `{"pattern":"the inn"}`, "The Inn is not.")
	if c := b.Citations("It is【0†L4】."); len(c) != 1 || c[0].Title != "list.pdf" {
		t.Errorf("citations %v", c)
	}
}
