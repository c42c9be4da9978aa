package pdf

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/tools/pdf/pdftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestText(t *testing.T) {
	got, err := Text(t.Context(), pdftest.Document("Hello (world)\nSecond line", "On page two"))
	if want := "[page 1]\nHello (world)\nSecond line\n\n[page 2]\nOn page two"; err != nil ||
		got != want {
		t.Errorf("%q, %v", got, err)
	}
	if !Is(pdftest.Document("x")) || Is([]byte("PDF")) {
		t.Error("Is")
	}
}

// page is a document of one page with these contents, which is object 4.
func page(objects ...string) []byte {
	return pdftest.Objects(append([]string{"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]" +
			"/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>>>"},
		objects...)...)
}

const font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"

// Hostile documents cost at most the limits. The memory of their instance is reserved beforehand;
// further allocations are counted.
func TestHostile(t *testing.T) {
	good := pdftest.Document("Hello")
	if _, err := Text(t.Context(), good); err != nil { // the program is compiled
		t.Fatal(err)
	}
	long := strings.Repeat("(abcdefgh) Tj ", 1<<16)
	for name, document := range map[string][]byte{
		"nothing":       nil,
		"cut off":       good[:len(good)/2],
		"no objects":    []byte("%PDF-1.7\n%%EOF"),
		"only a header": []byte("%PDF-1.4"),
		"bomb":          page(pdftest.Compressed(bytes.Repeat([]byte{' '}, 1<<28)), font),
		"much text": page(pdftest.Compressed([]byte("BT /F1 12 Tf 20 700 Td "+long+"ET")),
			font),
		"pages in a circle": pdftest.Objects("<</Type/Catalog/Pages 2 0 R>>",
			"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000000>>"),
		"forms in a circle": page(pdftest.Stream("", "/X Do"), font,
			pdftest.Stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>",
				"/X Do /X Do")),
		"deep arrays":      page(pdftest.Stream("", strings.Repeat("[", 1<<20)), font),
		"length of itself": page("<</Length 4 0 R>>stream\nBT ET\nendstream", font),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text, err := Text(t.Context(), document)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d MiB for %d bytes, %v", name, took>>20, len(text), err)
		if most := 40<<20 + 300*len(text); took > uint64(most) || len(text) > maxText+1000 {
			t.Errorf("%s: %d bytes are allocated for %d of text", name, took, len(text))
		}
	}
}

// A reader stops with its caller, in a document that would take hours.
func TestCancelled(t *testing.T) {
	form := func(inside string) string {
		return pdftest.Stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<<"+
			"/X 7 0 R/Y 8 0 R>>>>", strings.Repeat(inside, 1000))
	}
	slow := page(pdftest.Stream("", strings.Repeat("/X Do ", 1000)), font, form("/X Do "),
		form("/Y Do "), form("0 0 m 9 9 l S "))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Text(ctx, slow); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it stops with %v", err)
	}
	if _, err := Text(t.Context(), pdftest.Document("x")); err != nil {
		t.Errorf("the next document: %v", err)
	}
}

// hung is a PDFium that is initialised and never reads.
type hung struct{ pdfium.Pool }

func (hung) Close() error { return nil }
func (hung) GetInstanceWithContext(ctx context.Context) (pdfium.Pdfium, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Compiling PDFium for an hour costs a document nothing of its time, which begins after it. The
// caller's context ends both.
func TestTimeBeginsAfterTheInitialisation(t *testing.T) {
	defer func(before func(webassembly.Config) (pdfium.Pool, error)) {
		initPDFium = before
	}(initPDFium)
	for name, c := range map[string]struct {
		patience, took time.Duration // of the caller, of the document
		pool           func(webassembly.Config) (pdfium.Pool, error)
		fault          string
	}{
		"reads": {2 * time.Hour, time.Hour, initPDFium, ""},
		"hangs": {2 * time.Hour, time.Hour + maxTime,
			func(webassembly.Config) (pdfium.Pool, error) { return hung{}, nil },
			"the PDF document took longer than 30s to read"},
		"is not awaited": {time.Minute, time.Minute, initPDFium, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				initPDFium = func(config webassembly.Config) (pdfium.Pool, error) {
					select {
					case <-time.After(time.Hour):
						return c.pool(config)
					case <-config.Context.Done():
						return nil, config.Context.Err()
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				began := time.Now()
				text, err := Text(ctx, pdftest.Document("x"))
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, not %v", took, c.took)
				}
				if c.fault == "" && (err != nil || text != "[page 1]\nx") ||
					c.fault != "" && (err == nil || err.Error() != c.fault) {
					t.Errorf("%q, %v", text, err)
				}
			})
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add(pdftest.Document("Hello"))
	f.Add(page(pdftest.Compressed([]byte("BT /F1 12 Tf (x) Tj ET")), font))
	f.Fuzz(func(t *testing.T, document []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if text, _ := Text(ctx, document); len(text) > maxText+1000 {
			t.Errorf("%d bytes of text", len(text))
		}
	})
}
