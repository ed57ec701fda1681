package console

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// hidden stands for a secret.
const hidden = "***"

var (
	// password matches the user and the password in a URL.
	password = regexp.MustCompile(`://[^/@\s]+@`)
	// knownToken matches what is a key by its look: those of Hugging Face and of OpenAI.
	knownToken = regexp.MustCompile(`\b(hf_|sk-)[A-Za-z0-9_-]{12,}`)
	// bearer matches a token in a header.
	bearer = regexp.MustCompile(`(?i)\b(bearer)\s+[^\s"']+`)
	// jsonSecret matches a member of JSON within a text, by its name.
	jsonSecret = regexp.MustCompile(
		`(?i)("[\w-]*(?:key|token|secret|password|credentials?)"\s*:\s*)"[^"]*"`)
)

// hideSecrets replaces what looks like a secret in a node with this name. These are the values of
// options and keys with names of secrets, and texts that look like keys. Names of Secrets, of files
// and of environment variables stay.
func hideSecrets(n *yaml.Node, name string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			hideSecrets(n.Content[i+1], n.Content[i].Value)
		}
	case yaml.SequenceNode:
		before := name
		for _, element := range n.Content {
			hideSecrets(element, before)
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

// hideWithin replaces what looks like a secret in a text, which may be a command line.
func hideWithin(text string) string {
	text = password.ReplaceAllString(text, "://"+hidden+"@")
	text = knownToken.ReplaceAllString(text, hidden)
	text = bearer.ReplaceAllString(text, "$1 "+hidden)
	text = jsonSecret.ReplaceAllString(text, `$1"`+hidden+`"`)
	words := strings.Fields(text)
	changed := false
	for i, word := range words {
		name, value, assigned := strings.Cut(word, "=")
		switch {
		case assigned && value != "" && isSecret(name):
			words[i], changed = name+"="+hidden, true
		case i > 0 && isOption(words[i-1]) && isSecret(words[i-1]) && !isOption(word):
			words[i], changed = hidden, true
		}
	}
	if changed {
		return strings.Join(words, " ")
	}
	return text
}

// isOption reports whether a text is an option of a command line without its value.
func isOption(text string) bool {
	return strings.HasPrefix(text, "-") && !strings.ContainsAny(text, "= ")
}

// isSecret reports whether a key or an option with this name has a secret as its value.
func isSecret(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if len(words) == 0 {
		return false
	}
	names := []string{"ref", "env", "file", "path", "dir", "name", "id"}
	if slices.Contains(names, words[len(words)-1]) {
		return false // the value says where the secret is
	}
	for i, word := range words {
		switch word {
		case "key", "keys", "apikey", "token", "secret", "secrets", "password", "passwd", "pwd",
			"credential", "credentials", "authorization":
			return true
		case "tokens": // max_num_batched_tokens has a number of others
			if i > 0 && slices.Contains([]string{"api", "auth", "access", "hf"}, words[i-1]) {
				return true
			}
		}
	}
	return false
}
