// The library needs what this adds to `Reflect`. Loading both takes a fifth of a second, so this file is loaded late.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import { plainName } from '../../../sdk/node/network/allow.js'
import type { Authority } from '../../../sdk/node/network/authority.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const AUTHORITY_DAYS = 365
const LEAF_DAYS = 2
const MOST_LEAVES = 64
const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

interface Leaf {
  readonly madeAt: number
  readonly context: Promise<SecureContext>
}

const pem = async (key: webcrypto.CryptoKey): Promise<string> =>
  `-----BEGIN PRIVATE KEY-----\n${Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')}\n`
  + '-----END PRIVATE KEY-----\n'

/** A certificate authority in memory. Programs that trust it accept the daemon as the hosts of its certificates. */
export class ConversationAuthority implements Authority {
  readonly #keys: webcrypto.CryptoKeyPair
  readonly #issuer: string
  readonly #leaves = new Map<string, Leaf>()
  /** Its certificate, which programs trust, as PEM. */
  readonly certificate: string

  private constructor(keys: webcrypto.CryptoKeyPair, issuer: string, certificate: string) {
    this.#keys = keys
    this.#issuer = issuer
    this.certificate = certificate
  }

  static async make(): Promise<ConversationAuthority> {
    const keys = await webcrypto.subtle.generateKey(KEYS, false, ['sign', 'verify'])
    const issuer = `CN=Sandbox conversation ${randomBytes(8).toString('hex')}`
    const now = Date.now()
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serial(),
      name: issuer,
      keys,
      signingAlgorithm: KEYS,
      notBefore: new Date(now - HOUR),
      notAfter: new Date(now + AUTHORITY_DAYS * DAY),
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    })
    return new ConversationAuthority(keys, issuer, `${certificate.toString('pem')}\n`)
  }

  /** The TLS context with a certificate for this host. */
  contextOf(host: string): Promise<SecureContext> {
    const name = plainName(host)
    const known = this.#leaves.get(name)
    if (known && Date.now() - known.madeAt < DAY) return known.context
    this.#leaves.delete(name)
    if (this.#leaves.size >= MOST_LEAVES) this.#leaves.delete(this.#leaves.keys().next().value!)
    const leaf = { madeAt: Date.now(), context: this.#made(name) }
    this.#leaves.set(name, leaf)
    leaf.context.catch(() => void (this.#leaves.get(name) === leaf && this.#leaves.delete(name)))
    return leaf.context
  }

  async #made(name: string): Promise<SecureContext> {
    return createSecureContext(await this.identityOf(name))
  }

  /** A key with a certificate for this host, as PEM. */
  async identityOf(name: string): Promise<{ readonly key: string; readonly cert: string }> {
    const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify'])
    const now = Date.now()
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serial(),
      subject: 'CN=Sandbox',
      issuer: this.#issuer,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: KEYS,
      notBefore: new Date(now - HOUR),
      notAfter: new Date(now + LEAF_DAYS * DAY),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: isIP(name) ? 'ip' : 'dns', value: name }]),
        await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
      ],
    })
    return { key: await pem(keys.privateKey), cert: certificate.toString('pem') }
  }
}

/** A serial number is a positive integer (RFC 5280, section 4.1.2.2). */
const serial = (): string => `01${randomBytes(15).toString('hex')}`
