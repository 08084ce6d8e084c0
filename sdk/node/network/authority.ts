import { readFileSync, realpathSync } from 'node:fs'
import { createSecureContext, getCACertificates, setDefaultCACertificates, type SecureContext } from 'node:tls'

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

/** The variables of the daemon that name a file with authorities beside those of the system. */
const EXTRA = ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'] as const

/** What the variables of the daemon name, one text; a file that cannot be read is left out with a warning. */
const extraAuthorities = (): string =>
  EXTRA.flatMap(name => {
    const path = process.env[name]
    if (!path) return []
    try {
      if (realpathSync(path) === systemBundle()) return []
      const text = readFileSync(path, 'utf8')
      if (text.includes('-----BEGIN CERTIFICATE-----')) return text.trimEnd()
      process.emitWarning(`${name} is not used: ${path} holds no certificate in PEM`)
    } catch (error) {
      process.emitWarning(`${name} is not used: ${(error as Error).message}`)
    }
    return []
  }).join('\n')

const namedFiles = (): string => EXTRA.map(name => process.env[name] ?? '').join('\0')

let extra: { readonly named: string; readonly text: string } | undefined

/** The authorities that the deployment names beside those of the system, as PEM; empty: none. */
export const deploymentAuthorities = (): string => {
  const named = namedFiles()
  if (extra?.named !== named) extra = { named, text: extraAuthorities() }
  return extra.text
}

/** The certificates that a program of this machine trusts and those that the deployment names, one text. */
export const systemAuthorities = (): string => {
  const path = systemBundle()
  const text = path === undefined ? getCACertificates('default').join('\n') : readFileSync(path, 'utf8')
  return `${text.trimEnd()}\n${deploymentAuthorities()}`
}

let trusting: string | undefined

/** From here on this process trusts the system's authorities and those of the deployment, at every connection. */
export const trustAuthorities = (): void => {
  const named = namedFiles()
  if (trusting === named) return
  trusting = named
  setDefaultCACertificates([...getCACertificates('default'), systemAuthorities()])
  trusted = undefined
}

let trusted: SecureContext | undefined

/** What the daemon trusts as it asks a server for a program: the authorities of the system, and its own. */
export const trustedContext = (): SecureContext => {
  trustAuthorities()
  return (trusted ??= createSecureContext({ ca: getCACertificates('default') }))
}
