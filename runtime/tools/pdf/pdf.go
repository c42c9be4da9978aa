// Package pdf reads the text of PDF documents, with Chromium's PDFium.
//
// Documents come from anywhere, and PDF parsers are easily attacked. So PDFium runs as WebAssembly,
// one instance a document. What must stay true: a document is limited in time and memory, reaches
// no file, and only its own reading can fail.
package pdf

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/ossrun/ossrun/models/pack"
)

// Limits of one document.
const (
	MaxBytes    = 32 << 20
	maxPages    = 2000
	maxText     = 8 << 20 // bytes
	maxTime     = 30 * time.Second
	memoryPages = 4096 // WebAssembly pages: 256 MiB
)

func Is(document []byte) bool {
	return bytes.Contains(document[:min(len(document), 1024)], []byte("%PDF-"))
}

// running is held while a document is read: one at a time keeps the memory bounded.
var running = make(chan struct{}, 1)

// Text returns the text of a document; each page begins with a line "[page N]". Its error says how
// the document is faulty.
func Text(ctx context.Context, document []byte) (string, error) {
	if len(document) > MaxBytes {
		return "", fmt.Errorf("the PDF document has more than %d MiB", MaxBytes>>20)
	}
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	text, err := read(ctx, cancel, document)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, pdferrors.ErrPassword):
		return "", errors.New("the PDF document is protected by a password")
	case err != nil:
		return "", fmt.Errorf("the PDF document is damaged or too large: %w", err)
	}
	return text, nil
}

var initPDFium = webassembly.Init // tests replace it

// read cancels ctx when the document takes too long; compiling PDFium does not count.
func read(ctx context.Context, cancel context.CancelCauseFunc, document []byte) (_ string,
	err error) {
	defer func() { // an instance that was stopped halfway
		if x := recover(); x != nil {
			err = fmt.Errorf("the reader stopped: %v", x)
		}
	}()
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(reserve))
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(xdg.CacheHome, "ossrun", "pdf"))
	if err != nil { // without a folder it is compiled each time
		cache = wazero.NewCompilationCache()
	}
	defer cache.Close(context.WithoutCancel(ctx))
	pool, err := initPDFium(webassembly.Config{
		Context: experimental.WithCompilationWorkers(ctx, 2), MaxTotal: 1,
		RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache).
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
			WithMemoryLimitPages(memoryPages).WithCloseOnContextDone(true),
		FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
		RandomSource: rand.Reader,
	})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	defer time.AfterFunc(maxTime, func() {
		cancel(fmt.Errorf("the PDF document took longer than %v to read", maxTime))
	}).Stop()
	reader, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return "", err
	}
	return pages(ctx, reader, document)
}

// reservedMemory is an instance's memory, reserved from the system at once and touched on use. A
// slice that Go grows would be copied each time and leave several times as much garbage.
type reservedMemory struct{ *pack.Memory }

func reserve(_, _ uint64) experimental.LinearMemory {
	m, err := pack.Reserve(memoryPages << 16)
	if err != nil {
		panic(err) // read recovers
	}
	return reservedMemory{m}
}

func (r reservedMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(r.Bytes)) {
		return nil
	}
	return r.Bytes[:size]
}

func (r reservedMemory) Free() { _ = r.Memory.Free() }

func pages(ctx context.Context, reader pdfium.Pdfium, document []byte) (string, error) {
	opened, err := reader.OpenDocument(&requests.OpenDocument{File: &document})
	if err != nil {
		return "", err
	}
	count, err := reader.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i := range min(count.PageCount, maxPages) {
		page, err := reader.GetPageText(&requests.GetPageText{Page: requests.Page{
			ByIndex: &requests.PageByIndex{Document: opened.Document, Index: i}}})
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		text := ""
		if err != nil {
			text = "[this page cannot be read]"
		} else {
			text = clean(page.Text)
		}
		fmt.Fprintf(&all, "[page %d]\n%s\n\n", i+1, text)
		if all.Len() > maxText {
			return fmt.Sprintf("%s\n[the rest of the document is omitted: it has more than %d "+
				"MiB of text]", strings.ToValidUTF8(all.String()[:maxText], ""), maxText>>20), nil
		}
	}
	if omitted := count.PageCount - maxPages; omitted > 0 {
		fmt.Fprintf(&all, "[%d more pages are omitted]\n", omitted)
	}
	return strings.TrimRight(all.String(), "\n"), nil
}

// clean normalizes line ends and removes control characters.
func clean(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0xfffe {
			return -1
		}
		return r
	}, strings.ReplaceAll(text, "\uFFFE", "")) // marks a hyphen at a line's end
	return strings.TrimSpace(text)
}
