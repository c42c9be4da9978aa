package hub

// The files of a revision, and those that a model needs.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/store"
)

// Revision is a commit of a repository.
type Revision struct {
	Commit string
	Files  []ListedFile // all files, as the hub lists them
}

// ListedFile is a file of a listing. A mirror may leave out everything but the path.
type ListedFile struct {
	Path   string
	Size   int64  // -1 if unknown
	SHA256 string // hex, for files in LFS; else ""
}

// maxListing is the longest listing that is read, in bytes.
const maxListing = 64 << 20

// Revision asks for the commit of a branch, tag or commit, and its files.
func (c *Client) Revision(ctx context.Context, repo store.Repo, revision string) (Revision, error) {
	if !store.ValidRevision(revision) {
		return Revision{}, fmt.Errorf("%q is not a revision: a branch, a tag or a commit", revision)
	}
	address := c.Endpoint + "/api/models/" + repo.ID() + "/revision/" + url.PathEscape(revision) +
		"?blobs=true"
	var answer struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
			LFS  *struct {
				SHA256 string `json:"sha256"`
				Size   *int64 `json:"size"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	what := "revision " + revision + " of " + repo.ID()
	read := func(response *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(response.Body, maxListing))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return &ProtocolError{c.host(), "its list of files is not JSON"}
		}
		return nil
	}
	err := c.ask(ctx, http.MethodGet, address, repo, what, nil, read)
	if err != nil {
		return Revision{}, err
	}
	if !store.ValidCommit(answer.SHA) {
		return Revision{}, &ProtocolError{c.host(), fmt.Sprintf("%q is not a commit", answer.SHA)}
	}
	r := Revision{Commit: answer.SHA}
	for _, s := range answer.Siblings {
		f := ListedFile{Path: s.Name, Size: -1}
		if s.Size != nil {
			f.Size = *s.Size
		}
		if s.LFS != nil {
			f.SHA256 = strings.ToLower(s.LFS.SHA256)
			if s.LFS.Size != nil {
				f.Size = *s.LFS.Size
			}
		}
		r.Files = append(r.Files, f)
	}
	return r, nil
}

// smallFiles are the files other than the weights that ossrun, transformers and vLLM read.
var smallFiles = []string{
	"config.json", "generation_config.json", "model.safetensors.index.json",
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
	"chat_template.json", "adapter_config.json",
}

// Needed chooses the files that a model needs, the small ones first: those in the root, then the
// shards or the single weight file, or the LoRA adapter's weights. Folders (original/, metal/) have
// the same model in another layout.
func (r Revision) Needed() []ListedFile {
	var files, weights, adapter []ListedFile
	sharded := slices.ContainsFunc(r.Files,
		func(f ListedFile) bool { return f.Path == "model.safetensors.index.json" })
	for _, f := range r.Files {
		single := f.Path == "model.safetensors"
		shard, _ := path.Match("model-*-of-*.safetensors", f.Path)
		switch {
		case slices.Contains(smallFiles, f.Path):
			files = append(files, f)
		case single && !sharded, shard:
			weights = append(weights, f)
		case f.Path == "adapter_model.safetensors":
			adapter = append(adapter, f)
		}
	}
	if len(weights) == 0 {
		weights = adapter
	}
	rank := func(f ListedFile) int { return slices.Index(smallFiles, f.Path) }
	slices.SortFunc(files, func(a, b ListedFile) int { return rank(a) - rank(b) })
	slices.SortFunc(weights, func(a, b ListedFile) int { return strings.Compare(a.Path, b.Path) })
	return append(files, weights...)
}

// checkUsable returns an error if the names of the files show that the repository cannot be run.
func (r Revision) checkUsable(repo string) error {
	names := make([]string, len(r.Files))
	for i, f := range r.Files {
		names[i] = f.Path
	}
	config, adapter := slices.Contains(names, "config.json"),
		slices.Contains(names, "adapter_config.json")
	weights := slices.ContainsFunc(r.Needed(),
		func(f ListedFile) bool { return strings.HasSuffix(f.Path, ".safetensors") })
	switch {
	case weights && (config || adapter):
		return nil
	case slices.ContainsFunc(names, func(p string) bool { return path.Ext(p) == ".gguf" }):
		return fmt.Errorf(
			"%s holds GGUF files: ossrun pull fetches safetensors, as in openai/gpt-oss-20b", repo)
	case adapter:
		return fmt.Errorf("%s holds a LoRA adapter without adapter_model.safetensors: save it as "+
			"safetensors", repo)
	case !weights:
		return fmt.Errorf(
			"%s has no model*.safetensors in its root: it is not a model that ossrun runs", repo)
	}
	return fmt.Errorf("%s has no config.json: it is not a model that ossrun runs", repo)
}
