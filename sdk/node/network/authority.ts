import { readFileSync, realpathSync } from 'node:fs'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

/** Whom the programs of a network trust, so that the daemon can take the place of a host. */
export interface Authority {
  /** What programs trust, as PEM. */
  readonly certificate: string
  /** What a server of this host shows. */
  contextOf(host: string): Promise<SecureContext>
}

/** Where systems keep the certificates of the authorities that programs trust. */
const BUNDLES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem']

/** The real path of the file in which the system names the authorities it trusts, if it has one. */
export const systemBundle = (): string | undefined => {
  for (const path of BUNDLES) {
    try {
      return realpathSync(path)
    } catch {
      // The next one.
    }
  }
  return undefined
}

/** The certificates that a program of this machine trusts, one text. */
export const systemAuthorities = (): string => {
  const path = systemBundle()
  return path === undefined ? getCACertificates('default').join('\n') : readFileSync(path, 'utf8')
}

let trusted: SecureContext | undefined

/** What the daemon trusts as it asks a server for a program: the authorities of the system, and its own. */
export const trustedContext = (): SecureContext =>
  (trusted ??= createSecureContext({ ca: [...getCACertificates('default'), systemAuthorities()] }))
