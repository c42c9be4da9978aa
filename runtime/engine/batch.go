package engine

import (
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/kv"
)

// One step's input, and the rules it must keep. Everything a Device relies on (ids inside the
// vocabulary, tables long enough, no missing page inside a window) is checked here, once, so that
// kernels need no bounds checks.

// PageTokens is how many positions of one sequence a KV page holds.
const PageTokens = kv.PageTokens

// SeqRows are the rows of one sequence in a Batch: tokens at the consecutive positions Start,
// Start+1, ... Start+Rows-1.
//
// Full and Window are block tables: entry i is the page of positions [i*PageTokens,
// (i+1)*PageTokens), for the layers that see everything and for those that see a window. An entry
// -1 is a page given back; that is allowed only in Window, for positions that no row of this step
// sees.
//
// Adapter is the model that the sequence is of: 0, or one of Settings.Adapters, counted from 1.
//
// Prompt is how many of the rows, the first ones, are of the prompt: Settings.Tiles.
type SeqRows struct {
	Start, Rows  int32
	Prompt       int32
	Full, Window []int32
	Adapter      int32
}

// A Batch is one step: rows of several sequences, each sequence's together, in the order of Seqs.
// If an engine has adapters, Seqs and LogitRows are in their order.
type Batch struct {
	Tokens    []int32 // [rows] token ids
	Seqs      []SeqRows
	LogitRows []int32 // the rows whose logits are wanted; any order, repeats allowed

	// LogitMask may be nil. A device may call it before it computes the logits, the last part of a
	// step: a bit for each token whose logit is read in any row, the lowest of a word first, or nil
	// for all. The other logits may then be any finite number.
	LogitMask func() []uint64

	// Twins has the second page of each page in Window; nil if WindowPages is 1.
	Twins []int32

	// Rebuild computes the window layers' keys and values again while those of the full layers are
	// still in the cache: nothing is written for full layers, and no logits are computed. The
	// window pages before a sequence's first row may be missing: the first rows are then wrong,
	// which is harmless (see ReceptiveField). But every entry of Window that a row sees must name a
	// page.
	Rebuild bool
}

// CheckFor says whether a batch can run on an engine for a model of shape s with settings o.
func (b *Batch) CheckFor(s models.Spec, o Settings) error {
	if err := b.Check(s, o.MaxNumBatchedTokens, o.Pages); err != nil {
		return err
	}
	if most := o.Seqs(o.Rows()); len(b.Seqs) > most {
		return fmt.Errorf("rows of %d sequences are in a step, this engine was made for %d",
			len(b.Seqs), most)
	}
	if o.MaxLogits > 0 && len(b.LogitRows) > o.MaxLogits {
		return fmt.Errorf("logits of %d rows are asked for, this engine was made for %d",
			len(b.LogitRows), o.MaxLogits)
	}
	if err := b.checkAdapters(1 + len(o.Adapters)); err != nil {
		return err
	}
	if WindowPages(o.KVCacheDtype) > 1 {
		return b.checkTwins(s, o.Pages)
	}
	return nil
}

// Check says whether a batch can run with at most maxRows rows on a pool of pages pages.
func (b *Batch) Check(s models.Spec, maxRows, pages int) error {
	rows := len(b.Tokens)
	if rows == 0 {
		return fmt.Errorf("a step needs at least one row")
	}
	if rows > maxRows {
		return fmt.Errorf("a step of %d rows is larger than the %d this engine was made for", rows,
			maxRows)
	}
	for i, id := range b.Tokens {
		if id < 0 || int(id) >= s.Vocab {
			return fmt.Errorf("row %d: token %d is outside the vocabulary of %d", i, id, s.Vocab)
		}
	}
	sum := 0
	for i := range b.Seqs {
		if err := b.Seqs[i].check(s, pages); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
		sum += int(b.Seqs[i].Rows)
	}
	if sum != rows {
		return fmt.Errorf("the sequences have %d rows, the step has %d tokens", sum, rows)
	}
	if b.Rebuild && len(b.LogitRows) > 0 {
		return fmt.Errorf("logits are asked for in a step that rebuilds window pages")
	}
	if len(b.LogitRows) > maxRows {
		return fmt.Errorf("logits of %d rows are asked for, this engine was made for %d",
			len(b.LogitRows), maxRows)
	}
	for _, r := range b.LogitRows {
		if r < 0 || int(r) >= rows {
			return fmt.Errorf("logits of row %d are asked for in a step of %d rows", r, rows)
		}
	}
	return nil
}

func (q *SeqRows) check(s models.Spec, pages int) error {
	if q.Start < 0 || q.Rows < 1 || q.Prompt < 0 || q.Prompt > q.Rows {
		return fmt.Errorf("%d rows, %d of a prompt, from position %d", q.Rows, q.Prompt, q.Start)
	}
	end := int(q.Start) + int(q.Rows)
	if end > s.MaxPosition {
		return fmt.Errorf("position %d is beyond the model's %d", end-1, s.MaxPosition)
	}
	need := (end + PageTokens - 1) / PageTokens
	if err := checkTable("full", q.Full, 0, need, pages); err != nil {
		return err
	}
	return checkTable("window", q.Window, FirstVisible(int(q.Start), s.Window)/PageTokens, need,
		pages)
}

// checkTwins refuses a batch where a page that a row sees or writes in a window layer has no twin.
func (b *Batch) checkTwins(s models.Spec, pages int) error {
	if len(b.Twins) != pages {
		return fmt.Errorf("8-bit pages need a twin for each window page: %d are given for a pool "+
			"of %d", len(b.Twins), pages)
	}
	for i, q := range b.Seqs {
		first, end := FirstVisible(int(q.Start), s.Window)/PageTokens, int(q.Start+q.Rows)
		for entry := first; entry*PageTokens < end; entry++ {
			if twin := b.Twins[q.Window[entry]]; twin < 0 || int(twin) >= pages ||
				twin == q.Window[entry] {
				return fmt.Errorf("sequence %d: window page %d has page %d of a pool of %d for a "+
					"twin", i, q.Window[entry], twin, pages)
			}
		}
	}
	return nil
}

// TableEntries is how many entries the block tables of a step of so many rows have at most: for the
// full layers up to the end of the context, for the window layers those that rows see or write.
func TableEntries(s models.Spec, o Settings, rows int) int {
	seqs := o.Seqs(rows)
	full := seqs * ((s.MaxPosition + PageTokens - 1) / PageTokens)
	// A row and its window are Window positions, each further row one more, and n positions are in
	// at most (n + 2*PageTokens - 2) / PageTokens pages. Sums of such quotients are no more than
	// the quotient of the sums.
	window := (rows + seqs*(s.Window-1+2*PageTokens-2)) / PageTokens
	return full + min(window, full)*WindowPages(o.KVCacheDtype)
}

// FirstVisible is the first position that a query at position sees in a layer with this window.
func FirstVisible(position, window int) int { return max(0, position-window+1) }

// checkTable refuses a table with an entry of [from, need) that is not a page of the pool.
func checkTable(name string, table []int32, from, need, pages int) error {
	if len(table) < need {
		return fmt.Errorf("the %s block table has %d pages, %d are needed", name, len(table), need)
	}
	for i := from; i < need; i++ {
		if table[i] < 0 {
			return fmt.Errorf("the %s block table has no page for positions %d to %d", name,
				i*PageTokens, (i+1)*PageTokens-1)
		}
		if int(table[i]) >= pages {
			return fmt.Errorf("the %s block table names page %d of a pool of %d", name, table[i],
				pages)
		}
	}
	return nil
}
