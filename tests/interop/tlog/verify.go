// SPDX-License-Identifier: Apache-2.0

// verify checks a log directory with golang.org/x/mod/sumdb, the code of Go's checksum
// database, and none of ours.
//
//	verify [-index I]... [-proof FILE]... [-consistency FILE]... [-expected FILE] LOGDIR
//
// For every signed checkpoint: the signature, the root as the tiles give it, and that it
// extends the one before. For every event: that its line is the leaf in the tiles. The
// given events, and some more, are proven and checked.
//
// Builds with Debian's golang-go and golang-golang-x-mod-dev:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go build verify.go
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const step = 37 // as in sample.c

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func must(err error, format string, args ...any) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "verify: %s: %v\n", fmt.Sprintf(format, args...), err)
		os.Exit(1)
	}
}

func read(parts ...string) []byte {
	data, err := os.ReadFile(filepath.Join(parts...))
	must(err, "cannot read")
	return data
}

// tiles reads C2SP paths (tile/L/N) where x/mod asks for tile/8/L/N.
type tiles struct{ dir string }

func (t tiles) Height() int                             { return 8 }
func (t tiles) SaveTiles(tiles []tlog.Tile, _ [][]byte) {}

func (t tiles) path(tile tlog.Tile) string {
	return filepath.Join(t.dir, "tile", strings.TrimPrefix(tile.Path(), "tile/8/"))
}

func (t tiles) ReadTiles(want []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, tile := range want {
		data, err := os.ReadFile(t.path(tile))
		if errors.Is(err, os.ErrNotExist) && tile.W < 256 {
			full := tile
			full.W = 256
			data, err = os.ReadFile(t.path(full))
			if err == nil && len(data) == 8192 {
				data = data[:tile.W*tlog.HashSize]
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

type checkpoint struct {
	origin string
	tree   tlog.Tree
}

func open(data []byte, keys note.Verifiers) (c checkpoint, err error) {
	n, err := note.Open(data, keys)
	if err != nil {
		return c, err
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) < 4 || lines[3] != "" && !strings.HasSuffix(n.Text, "\n") {
		return c, errors.New("not a checkpoint")
	}
	c.origin = lines[0]
	c.tree.N, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || strconv.FormatInt(c.tree.N, 10) != lines[1] || c.tree.N < 0 {
		return c, fmt.Errorf("bad size %q", lines[1])
	}
	c.tree.Hash, err = tlog.ParseHash(lines[2])
	if err != nil {
		return c, err
	}
	if n.Sigs[0].Name != c.origin {
		return c, fmt.Errorf("signed by %q, origin %q", n.Sigs[0].Name, c.origin)
	}
	return c, nil
}

func readKeys(dir string) note.Verifiers {
	var keys []note.Verifier
	for _, vkey := range strings.Fields(string(read(dir, "origin"))) {
		key, err := note.NewVerifier(vkey)
		must(err, "origin")
		keys = append(keys, key)
	}
	return note.VerifierList(keys...)
}

// checkpoints: a text and its signatures, each followed by a blank line.
func readCheckpoints(dir string, keys note.Verifiers) []checkpoint {
	var all []checkpoint
	parts := strings.SplitAfter(string(read(dir, "checkpoints")), "\n\n")
	for i := 0; i+1 < len(parts); i += 2 {
		signed := parts[i] + strings.TrimSuffix(parts[i+1], "\n")
		c, err := open([]byte(signed), keys)
		must(err, "checkpoints, number %d", i/2)
		all = append(all, c)
	}
	c, err := open(read(dir, "checkpoint"), keys)
	must(err, "checkpoint")
	return append(all, c)
}

func readEvents(dir string) [][]byte {
	names, err := filepath.Glob(filepath.Join(dir, "segments", "*.jsonl"))
	must(err, "segments")
	sort.Strings(names)
	var lines [][]byte
	for _, name := range names {
		want := fmt.Sprintf("%020d.jsonl", len(lines))
		if filepath.Base(name) != want {
			must(errors.New("is not "+want), "%s", name)
		}
		data := read(name)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			must(errors.New("the last line does not end"), "%s", name)
		}
		lines = append(lines, bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))...)
	}
	return lines
}

func readerFor(dir string, tree tlog.Tree) tlog.HashReader {
	return tlog.TileHashReader(tree, tiles{dir})
}

func checkRoots(dir string, all []checkpoint) {
	for i, c := range all {
		reader := readerFor(dir, c.tree)
		root, err := tlog.TreeHash(c.tree.N, reader)
		must(err, "tiles of size %d", c.tree.N)
		if c.tree.N == 0 {
			root = sha256.Sum256(nil) // C2SP; x/mod says zero
		}
		if root != c.tree.Hash {
			must(errors.New("not the signed root"), "tiles of size %d", c.tree.N)
		}
		if i == 0 || all[i-1].tree.N == 0 {
			continue
		}
		old := all[i-1].tree
		proof, err := tlog.ProveTree(c.tree.N, old.N, reader)
		must(err, "proving %d a prefix of %d", old.N, c.tree.N)
		must(tlog.CheckTree(proof, c.tree.N, c.tree.Hash, old.N, old.Hash),
			"%d is no prefix of %d", old.N, c.tree.N)
	}
}

func checkLeaves(dir string, tree tlog.Tree, lines [][]byte) {
	if int64(len(lines)) < tree.N {
		must(fmt.Errorf("%d events for a checkpoint of %d", len(lines), tree.N), "segments")
	}
	reader := readerFor(dir, tree)
	for from := int64(0); from < tree.N; from += 4096 {
		var indexes []int64
		for i := from; i < tree.N && i < from+4096; i++ {
			indexes = append(indexes, tlog.StoredHashIndex(0, i))
		}
		hashes, err := reader.ReadHashes(indexes)
		must(err, "leaves from %d", from)
		for k, h := range hashes {
			if h != tlog.RecordHash(lines[from+int64(k)]) {
				must(errors.New("not the leaf in the tiles"), "event %d", from+int64(k))
			}
		}
	}
}

func checkInclusion(dir string, tree tlog.Tree, lines [][]byte, index int64) {
	if index < 0 || index >= tree.N {
		must(errors.New("no such event"), "event %d", index)
	}
	proof, err := tlog.ProveRecord(tree.N, index, readerFor(dir, tree))
	must(err, "proving event %d", index)
	must(tlog.CheckRecord(proof, tree.N, tree.Hash, index, tlog.RecordHash(lines[index])),
		"event %d is not in", index)
}

// checkProofFile reads the C2SP tlog-proof form.
func checkProofFile(name string, keys note.Verifiers, lines [][]byte) {
	head, signed, found := strings.Cut(string(read(name)), "\n\n")
	if !found {
		must(errors.New("no checkpoint"), "%s", name)
	}
	c, err := open([]byte(signed), keys)
	must(err, "%s", name)
	rows := strings.Split(head, "\n")
	if rows[0] != "c2sp.org/tlog-proof@v1" || len(rows) < 2 {
		must(errors.New("not a tlog-proof"), "%s", name)
	}
	rows = rows[1:]
	if strings.HasPrefix(rows[0], "extra ") {
		rows = rows[1:]
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(rows[0], "index "), 10, 64)
	must(err, "%s", name)
	if !strings.HasPrefix(rows[0], "index ") || index < 0 || index >= c.tree.N || index >= int64(len(lines)) {
		must(errors.New("bad index"), "%s", name)
	}
	var proof tlog.RecordProof
	for _, row := range rows[1:] {
		h, err := tlog.ParseHash(row)
		must(err, "%s", name)
		proof = append(proof, h)
	}
	must(tlog.CheckRecord(proof, c.tree.N, c.tree.Hash, index, tlog.RecordHash(lines[index])),
		"%s", name)
}

// stored is a whole tree in memory, made from the lines alone.
type stored []tlog.Hash

func (s stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = s[x]
	}
	return out, nil
}

func store(lines [][]byte) stored {
	var s stored
	for i, line := range lines {
		hashes, err := tlog.StoredHashes(int64(i), line, s)
		must(err, "event %d", i)
		s = append(s, hashes...)
	}
	return s
}

func addProof(h hash.Hash, proof []tlog.Hash) {
	h.Write([]byte{byte(len(proof))})
	for _, p := range proof {
		h.Write(p[:])
	}
}

// expect computes a line of sample's file with x/mod's own prover.
func expect(s stored, size int64) string {
	root := tlog.Hash(sha256.Sum256(nil))
	inclusion, consistency := sha256.New(), sha256.New()
	for i := int64(0); i < size; i++ {
		if i != 0 && i != size-1 && i%step != size%step {
			continue
		}
		record, err := tlog.ProveRecord(size, i, s)
		must(err, "proving event %d of %d", i, size)
		addProof(inclusion, record)
		tree, err := tlog.ProveTree(size, i+1, s)
		must(err, "proving %d a prefix of %d", i+1, size)
		addProof(consistency, tree)
	}
	if size > 0 {
		var err error
		root, err = tlog.TreeHash(size, s)
		must(err, "root of %d", size)
	}
	return fmt.Sprintf("%d %s %s %s", size, hex.EncodeToString(root[:]),
		hex.EncodeToString(inclusion.Sum(nil)), hex.EncodeToString(consistency.Sum(nil)))
}

func checkExpected(name string, lines [][]byte) {
	s := store(lines)
	rows := strings.Split(strings.TrimSuffix(string(read(name)), "\n"), "\n")
	if len(rows) != len(lines)+1 {
		must(fmt.Errorf("%d rows for %d events", len(rows), len(lines)), "%s", name)
	}
	for size, row := range rows {
		if want := expect(s, int64(size)); row != want {
			must(fmt.Errorf("\n ours %s\n Go's %s", row, want), "size %d", size)
		}
	}
}

// checkConsistency checks what `assay log prove --from M --json` prints: both roots are
// computed from the events.
func checkConsistency(name string, s stored, size int64) {
	var said struct {
		From, To int64
		FromRoot string `json:"from_root"`
		ToRoot   string `json:"to_root"`
		Hashes   []string
	}
	must(json.Unmarshal(read(name), &said), "%s", name)
	if said.From < 1 || said.From > said.To || said.To > size {
		must(fmt.Errorf("from %d to %d", said.From, said.To), "%s", name)
	}
	var proof tlog.TreeProof
	for _, text := range said.Hashes {
		h, err := tlog.ParseHash(text)
		must(err, "%s", name)
		proof = append(proof, h)
	}
	from, err := tlog.TreeHash(said.From, s)
	must(err, "%s", name)
	to, err := tlog.TreeHash(said.To, s)
	must(err, "%s", name)
	if from.String() != said.FromRoot || to.String() != said.ToRoot {
		must(errors.New("the roots are others"), "%s", name)
	}
	must(tlog.CheckTree(proof, said.To, to, said.From, from), "%s", name)
}

func main() {
	var indexes, proofs, consistencies list
	flag.Var(&indexes, "index", "an event to prove")
	flag.Var(&proofs, "proof", "a file in tlog-proof form")
	flag.Var(&consistencies, "consistency", "a file with a consistency proof in JSON")
	expected := flag.String("expected", "", "roots and digests of proofs, by sample")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: verify [-index I] [-proof FILE] [-consistency FILE] [-expected FILE] LOGDIR")
		os.Exit(3)
	}
	dir := flag.Arg(0)
	keys := readKeys(dir)
	all := readCheckpoints(dir, keys)
	lines := readEvents(dir)
	newest := all[len(all)-1].tree
	checkRoots(dir, all)
	checkLeaves(dir, newest, lines)
	for i := int64(0); i < newest.N; i += 1 + newest.N/50 {
		checkInclusion(dir, newest, lines, i)
	}
	for _, text := range indexes {
		index, err := strconv.ParseInt(text, 10, 64)
		must(err, "-index")
		checkInclusion(dir, newest, lines, index)
	}
	for _, name := range proofs {
		checkProofFile(name, keys, lines)
	}
	if len(consistencies) > 0 {
		s := store(lines)
		for _, name := range consistencies {
			checkConsistency(name, s, newest.N)
		}
	}
	if *expected != "" {
		checkExpected(*expected, lines)
	}
	fmt.Printf("%d checkpoints, %d events, %d proofs: sound\n", len(all), newest.N, len(proofs))
}
