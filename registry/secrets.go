package registry

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/strictyaml"
)

// hidden stands for a secret.
const hidden = "***"

var (
	// password matches the user and the password in a URL.
	password = regexp.MustCompile(`://[^/@\s]+@`)
	// knownToken matches what is a key by its look: those of Hugging Face, OpenAI, GitHub, GitLab,
	// Slack, NVIDIA, Google and Amazon, and signed tokens in JSON.
	knownToken = regexp.MustCompile(`\b((hf_|sk-|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|nvapi-|` +
		`AIza)[A-Za-z0-9_-]{12,}|(AKIA|ASIA)[A-Z0-9]{12,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+)`)
	// credentials matches what a header sends.
	credentials = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`)
	// jsonMember matches a member of JSON within a text, by its name. The text may be quoted once
	// more.
	jsonMember = regexp.MustCompile(
		`(\\*["']([\w.-]+)\\*["']\s*:\s*\\*["'])[^"'\\]*`)
	// header matches a header without a space before its value.
	header = regexp.MustCompile(`(?i)\b((?:x-)?api-key|authorization):[^\s"']+`)
	// quotedText matches a value in a message.
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"…?`)
)

// HideSecrets replaces what looks like a secret in a node. These are the values of options and keys
// with names of secrets, and texts that look like keys. Names of Secrets, of files and of
// environment variables stay.
func HideSecrets(n *yaml.Node) { hideIn(n, "") }

// ShownArgs returns arguments of an engine in JSON, without what looks like a secret.
func ShownArgs(args map[string]any) json.RawMessage {
	n := strictyaml.Encode(args)
	HideSecrets(n)
	return strictyaml.JSON(n)
}

// hideIn hides what looks like a secret in the value of a key or an option with this name.
func hideIn(n *yaml.Node, name string) {
	switch n.Kind {
	case yaml.MappingNode:
		named := valueOf(n, "name") // as in {name: HF_TOKEN, value: hf_...}
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch key := n.Content[i].Value; {
			case isSecret(name) && !saysWhere(key):
				hideIn(n.Content[i+1], name)
			case key == "value" && isSecret(named):
				hideIn(n.Content[i+1], named)
			default:
				hideIn(n.Content[i+1], key)
			}
		}
	case yaml.SequenceNode:
		before := name
		for _, element := range n.Content {
			hideIn(element, before)
			before = name
			if element.Tag == "!!str" && isOption(element.Value) {
				before = element.Value
			}
		}
	case yaml.ScalarNode:
		secret := isSecret(name) && !isOption(n.Value) && n.Tag != "!!null" && n.Tag != "!!bool"
		switch {
		case secret && n.Value != "":
			*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: hidden}
		case n.Tag == "!!str":
			n.Value = hideWithin(n.Value)
		}
	}
}

// looksLikeKey reports whether a text is a key by its look.
func looksLikeKey(text string) bool { return knownToken.MatchString(text) }

// hideInFault hides what looks like a secret in the text of a fault, which may quote the value at
// its path. Where a path says where a secret is, some write the secret itself.
func hideInFault(path, text string) string {
	if last := path[strings.LastIndexByte(path, '.')+1:]; namesSecret(wordsOf(last)) {
		text = quotedText.ReplaceAllString(text, hidden)
	}
	return hideWithin(text)
}

// signs are what every text with a secret has one of, in lower case. Most texts have none, and are
// not looked at further.
var signs = []string{"key", "token", "secret", "passw", "pwd", "passphrase", "credential",
	"authorization", "jwt", "bearer", "basic", "://", "hf_", "sk-", "gho_", "ghp_", "ghs_", "ghu_",
	"ghr_", "github_pat_", "glpat-", "xox", "nvapi-", "aiza", "akia", "asia", "eyj"}

// hideWithin replaces what looks like a secret in a text, which may be a command line.
func hideWithin(text string) string {
	lower := strings.ToLower(text)
	has := func(sign string) bool { return strings.Contains(lower, sign) }
	if !slices.ContainsFunc(signs, has) {
		return text
	}
	text = password.ReplaceAllString(text, "://"+hidden+"@")
	text = knownToken.ReplaceAllString(text, hidden)
	text = credentials.ReplaceAllString(text, "$1 "+hidden)
	text = header.ReplaceAllString(text, "$1:"+hidden)
	text = jsonMember.ReplaceAllStringFunc(text, func(found string) string {
		parts := jsonMember.FindStringSubmatch(found)
		if !isSecret(parts[2]) {
			return found
		}
		return parts[1] + hidden
	})
	words := strings.Fields(text)
	changed := false
	for i, word := range words {
		hide := i > 0 && announces(words[i-1]) && !isOption(word) && !strings.Contains(word, hidden)
		if name, assigned := assignment(word); assigned {
			words[i], changed = name+hidden, true
		} else if hide {
			words[i], changed = hidden, true
		}
	}
	if changed {
		return strings.Join(words, " ")
	}
	return text
}

// announces reports whether a word is an option, or a name before a colon, whose value is a secret.
// A quotation mark or a path may stand before an option.
func announces(word string) bool {
	word = strings.TrimLeft(word, `"'[{(`)
	if at := strings.Index(word, "--"); at > 0 {
		word = word[at:]
	}
	return (isOption(word) || strings.HasSuffix(word, ":")) && isSecret(word)
}

// assignment returns a word up to the value that it assigns to the name of a secret.
func assignment(word string) (name string, found bool) {
	from := 0
	for i, r := range word {
		switch {
		case r == '=' && i+1 < len(word) && isSecret(word[from:i]):
			return word[:i+1], true
		case strings.ContainsRune("=?&;,{", r):
			from = i + 1
		}
	}
	return "", false
}

// isOption reports whether a text is an option of a command line without its value.
func isOption(text string) bool {
	return strings.HasPrefix(text, "-") && !strings.ContainsAny(text, "= ")
}

// isSecret reports whether a key or an option with this name has a secret as its value.
func isSecret(name string) bool { return !saysWhere(name) && namesSecret(wordsOf(name)) }

// saysWhere reports whether the value of a key with this name says where something is.
func saysWhere(name string) bool {
	words := wordsOf(name)
	return len(words) > 0 && slices.Contains([]string{"ref", "env", "file", "path", "dir", "name",
		"id"}, words[len(words)-1])
}

func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// namesSecret reports whether a name with these words names a secret.
func namesSecret(words []string) bool {
	for i, word := range words {
		switch word {
		case "key", "keys", "secrets", "pwd", "credential", "credentials", "authorization", "jwt":
			return true
		case "tokens": // max_num_batched_tokens has a number of others
			if i > 0 && slices.Contains([]string{"api", "auth", "access", "hf"}, words[i-1]) {
				return true
			}
		}
		for _, end := range []string{"token", "secret", "password", "passwd", "passphrase",
			"apikey", "apikeys", "accesskey", "secretkey"} {
			if strings.HasSuffix(word, end) {
				return true
			}
		}
	}
	return false
}
