package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeBatchFile creates a batch file of chat lines, each of lineLength bytes with its newline, and
// returns its path.
func (l *environment) writeBatchFile(name string, lines, lineLength int) (path string, err error) {
	path = filepath.Join(l.dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	prompt := strings.Repeat(
		`The quick brown fox said \"hello\" to the lazy dog,\nwho did not answer it this time either. `, lineLength/90+1)
	for i := range lines {
		w.WriteString(chatLine(i, lineLength, prompt))
	}
	return path, w.Flush()
}

const lineTail = `"}]}}` + "\n"

func chatLine(i, length int, prompt string) string {
	head := fmt.Sprintf(
		`{"custom_id":"request-%d","method":"POST","url":"/v1/chat/completions","body":{"model":%q,"max_tokens":256,`+
			`"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"%d: `, i, model, i)
	cut := prompt[:length-len(head)-len(lineTail)]
	text := strings.TrimRight(cut, `\`) // don't cut an escape
	return head + text + strings.Repeat(".", len(cut)-len(text)) + lineTail
}
