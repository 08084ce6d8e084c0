/** The name of a program, without its folder and the ending of Windows. */
export const programOf = (word: string): string => {
  const name = word.slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1)
  return name.replace(/\.exe$/i, '')
}

/** Whether an option is among the words: a letter, alone or in a group, or a long name that may be shortened. */
export const hasOption = (
  words: readonly string[],
  letter: string | undefined,
  ...names: readonly string[]
): boolean => {
  const end = words.indexOf('--')
  return (end < 0 ? words : words.slice(0, end)).some(word => {
    if (word.startsWith('--')) {
      const name = word.slice(2).split('=', 1)[0]!
      return names.some(long => long === name || (name.length >= 3 && long.startsWith(name)))
    }
    if (!word.startsWith('-') || word.length < 2) return false
    return (
      (letter !== undefined && /^-[a-zA-Z0-9]+$/.test(word) && word.includes(letter)) || names.includes(word.slice(1))
    )
  })
}

/** The words that are no options. */
export const operands = (words: readonly string[]): string[] => {
  const end = words.indexOf('--')
  if (end < 0) return words.filter(word => !word.startsWith('-'))
  return [...words.slice(0, end).filter(word => !word.startsWith('-')), ...words.slice(end + 1)]
}

/** The words after leading options; `valued` are the options whose value is the next word. */
export const afterOptions = (words: readonly string[], valued: readonly string[] = []): readonly string[] => {
  let at = 0
  while (at < words.length && words[at]!.startsWith('-')) {
    const word = words[at]!
    at += valued.includes(word) ? 2 : 1
    if (word === '--') break
  }
  return words.slice(at)
}

const LOCAL = /^(?:localhost|.*\.localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[?::1?\]?)$/i

/** Whether a host is this machine. */
export const isLocalHost = (host: string): boolean => LOCAL.test(host)

/** The host of an address, or of `host:port/path`; undefined: the text names none. */
export const hostOf = (text: string): string | undefined => {
  const url = URL.parse(text)
  if (url && /^(?:https?|wss?|ftps?|sftp|ssh|git|redis|postgres(?:ql)?|mysql|mongodb):$/.test(url.protocol))
    return url.hostname
  const plain = /^(?:[\w.-]+@)?(\[[0-9a-f:]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::\d{1,5})?(?:[/?].*)?$/i.exec(text)
  const host = plain?.[1]
  return host && (host.includes('.') || host.includes(':') || host === 'localhost') ? host : undefined
}

const SECRET_NAMES = new RegExp(
  String.raw`^(?:\.env(?:\..+|rc)?|\.netrc|\.pgpass|\.my\.cnf|\.pypirc|\.git-credentials|\.vault-token|\.htpasswd`
    + String.raw`|id_(?:rsa|dsa|ecdsa|ed25519)|credentials(?:\.json|\.ya?ml|\.db)?|secrets?\.(?:json|ya?ml|toml|env)`
    + String.raw`|service[-_]account.*\.json|client_secret.*\.json|shadow|gshadow`
    + String.raw`|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ovpn))$`,
  'i',
)
const HARMLESS_NAMES = /^\.env\.(?:example|sample|template|dist|defaults?)$|\.pub(?:lic)?(?:\.pem|\.key)?$/i
const SECRET_FOLDERS = new RegExp(
  String.raw`(?:^|/)(?:\.ssh(?:/(?!known_hosts|config$|authorized_keys).+)?|\.aws(?:/.+)?`
    + String.raw`|\.gnupg(?:/.+)?|\.azure(?:/.+)?`
    + String.raw`|\.config/(?:gcloud|gh|op)(?:/.+)?|\.kube/config|\.docker/config\.json|\.password-store(?:/.+)?`
    + String.raw`|run/secrets(?:/.+)?)$`,
)
const ENVIRONMENT = /^\/proc\/[^/]+\/environ$/

/** Whether a path names a key, a file of secrets or a store of credentials. */
export const isSecretPath = (path: string): boolean => {
  if (path.length > 4_096 || /\s/.test(path) || path.includes('://')) return false
  const plain = path.replace(/\/+$/, '')
  const name = plain.slice(plain.lastIndexOf('/') + 1)
  if (HARMLESS_NAMES.test(name)) return false
  return SECRET_NAMES.test(name) || SECRET_FOLDERS.test(plain) || ENVIRONMENT.test(plain)
}

const DROPS = new RegExp(
  String.raw`\b(?:drop\s+(?:table|database|schema|view|index|role|user|keyspace|collection|materialized\s+view)\b`
    + String.raw`|truncate\s+(?:table\s+)?["\x60[\w]|flushall\b|flushdb\b)|\.dropDatabase\(|\.drop\(\s*\)`
    + String.raw`|\.(?:deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)`,
  'i',
)
const DELETE = /\bdelete\s+from\s+[^;]*/gi

/** Whether a text drops, truncates, or deletes from a table without saying which rows. */
export const isDestructiveSql = (text: string): boolean => {
  const plain = text.replace(/--[^\n]*|\/\*[^]*?\*\//g, ' ')
  return DROPS.test(plain) || (plain.match(DELETE) ?? []).some(statement => !/\bwhere\b/i.test(statement))
}
