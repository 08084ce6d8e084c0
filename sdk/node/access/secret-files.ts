const SECRET_NAMES = new RegExp(
  String.raw`^(?:\.env.*|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|id_(?:rsa|dsa|ecdsa|ed25519)`
    + String.raw`|credentials(?:\..*)?|secrets?\..*|service[-_]account.*\.json|client_secret.*\.json`
    + String.raw`|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ovpn))$`,
  'i',
)

/** Whether a path names a key or a file of secrets: no source lines are taken from it. */
export const isSecretFile = (path: string): boolean => path.split('/').some(part => SECRET_NAMES.test(part))
