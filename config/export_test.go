package config

// RunTimeKeys and RestartKeys list the keys of each kind.
var RunTimeKeys, RestartKeys = runTimeKeys, restartKeys

// Under reports whether a key, or a section that contains it, is in a list.
var Under = under

// RemovedText has the removed keys.
var RemovedText = removedText
