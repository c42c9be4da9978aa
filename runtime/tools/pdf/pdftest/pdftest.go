// Package pdftest makes small PDF documents for tests.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// Document has a page for each text, with the text's lines.
func Document(pages ...string) []byte {
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>",
		fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), len(pages)),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
	for i, text := range pages {
		var content strings.Builder
		content.WriteString("BT /F1 12 Tf 20 700 Td ")
		escape := strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`)
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(&content, "(%s) Tj 0 -20 Td ", escape.Replace(line))
		}
		content.WriteString("ET")
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]"+
			"/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>", 5+2*i),
			Stream("", content.String()))
	}
	return Objects(objects...)
}

// Stream is an object with content; entries are further entries of its dictionary.
func Stream(entries, content string) string {
	return fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", entries, len(content), content)
}

// Compressed is a Stream whose content is deflated.
func Compressed(content []byte) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(content) // into memory
	_ = w.Close()
	return Stream("/Filter/FlateDecode", b.String())
}

// Objects is a document of these objects, numbered from 1; the first is the catalogue.
func Objects(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var table strings.Builder
	for i, o := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	tableOffset := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\n"+
		"startxref\n%d\n%%%%EOF\n", len(objects)+1, table.String(), len(objects)+1, tableOffset)
	return b.Bytes()
}
