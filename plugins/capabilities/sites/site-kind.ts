import { randomBytes } from 'node:crypto'
import { refuse, type Host } from '../../../sdk/index.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import { record } from '../../../sdk/node/record/record.js'
import { assertFields, fieldValues, filledTemplate, withoutCard, type OfferedCards } from '../cards/offered-cards.js'
import { EXIT_FIELD, IDENTITY, OWN_SITE, SITE } from '../cards/site-cards.js'
import type { AccountProfile } from '../contract.js'
import type { BrowserLogin } from '../login/contract.js'
import { isSeed, SEED, SEED_EXPECTED } from '../otp/seed.js'
import type { CapabilityStatus, ShownConfig } from '../records/contract.js'
import type { Entries, RecordedEntry } from '../records/entries.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'

const KEPT = 'site/'
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/

/** What is kept of a connection beside its record. */
interface KeptSite {
  /** The profile of its browser; no name of the connection, so that it can be renamed. */
  readonly profile: string
  /** When a person closed the window of a sign-in. */
  readonly signedIn?: number
}

type SitesHost = Pick<Host, 'call' | 'serves' | 'store' | 'signal' | 'log'>

export interface SitesDeps {
  readonly cards: Pick<OfferedCards, 'brought' | 'mark'>
  readonly entries: () => Pick<Entries, 'all' | 'find' | 'get' | 'isAccepted'>
  /** Asks a connection how it is, after its sign-in changed. */
  readonly status: (id: string) => Promise<CapabilityStatus>
}

const text = (config: ShownConfig, field: string): string | undefined =>
  config[field] === undefined ? undefined : String(config[field])

/** Accounts at sites, each with a profile of a browser, and the addresses that accounts are opened with. */
export class Sites {
  readonly #host: SitesHost
  readonly #deps: SitesDeps
  /** Windows that are closed by a call: their end says nothing more. */
  readonly #settled = new Set<string>()

  constructor(host: SitesHost, deps: SitesDeps) {
    this.#host = host
    this.#deps = deps
  }

  get kinds(): KindHandler[] {
    return [this.#browser, this.#identity]
  }

  /** Where a person signs in; undefined: its card has no address. */
  addressOf(kind: string, entry: Pick<OpenEntry, 'config'>): string | undefined {
    const { config } = entry
    if (kind === 'identity') return text(config, 'loginUrl')
    if (text(config, 'platform') === OWN_SITE) return text(config, 'url')
    const card = this.#deps.cards.brought('browser', config)
    const template = card?.offered.loginUrl ?? card?.offered.homeUrl
    return card && template && filledTemplate(template, fieldValues(card, { config, secrets: {} }))
  }

  /** The origins where values of an account may be filled in; undefined: the id is none of an account. */
  async originsOf(id: string, allowed: readonly string[] | undefined): Promise<string[] | undefined> {
    const entries = this.#deps.entries()
    const found = await entries.find(id)
    if (found?.kind !== 'browser' && found?.kind !== 'identity') return undefined
    if (allowed && !allowed.includes(id)) refuse('not-found', `this turn has no connection ${JSON.stringify(id)}`)
    if (!(await entries.isAccepted(found))) return refuse('conflict', unaccepted(id))
    const addresses = this.#addressesOf(found)
    // An identity is also typed where its accounts are.
    for (const entry of found.kind === 'identity' ? await entries.all() : [])
      if (entry.kind === 'browser' && entry.config.identity === id && (await entries.isAccepted(entry)))
        addresses.push(...this.#addressesOf(entry))
    return [...new Set(addresses.flatMap(address => (URL.canParse(address) ? [new URL(address).origin] : [])))]
  }

  /** Every address of a site that an account names. */
  #addressesOf({ kind, config }: Pick<RecordedEntry, 'kind' | 'config'>): string[] {
    const card = kind === 'browser' ? this.#deps.cards.brought('browser', config) : undefined
    const home = card?.offered.homeUrl
    return [
      this.addressOf(kind, { config }),
      card && home && filledTemplate(home, fieldValues(card, { config, secrets: {} })),
    ].flatMap(address => address ?? [])
  }

  /** Opens a window in which a person signs in. */
  async login(id: string): Promise<BrowserLogin> {
    const found = await this.#deps.entries().get(id)
    if (!(await this.#deps.entries().isAccepted(found)))
      refuse('conflict', `${id} came with the code or was changed by hand: save it first`)
    const url =
      this.addressOf(found.kind, found)
      ?? refuse('conflict', `there is nothing to sign in to: ${id} has no address (loginUrl)`)
    if (!(await this.#host.serves('browsers.open'))) refuse('unavailable', 'this sandbox runs without browsers')
    const { profile } = await this.#kept(id)
    const name = loginName(profile)
    const running = await this.#running(profile)
    if (running === name) return { kind: 'browser', session: name }
    if (running !== undefined)
      refuse('conflict', `a turn uses the browser of ${id}: close it first (DELETE /system/browsers/${running})`)
    this.#settled.delete(name)
    const label = `Sign in: ${found.label}`.slice(0, 80)
    await this.#host.call('browsers.open', { name, label, profile, url, ...exitOf(found) })
    return { kind: 'browser', session: name }
  }

  /** Ends the window of a sign-in; undefined: the handshake is none of a window. */
  async finish(id: string, handshake: string, cancel: boolean): Promise<CapabilityStatus | undefined> {
    if (!handshake.startsWith(LOGIN)) return undefined
    const kept = await this.#host.store.get<KeptSite>(KEPT + id)
    if (!kept || loginName(kept.profile) !== handshake)
      return refuse('not-found', `no sign-in of ${id} has the handshake ${JSON.stringify(handshake.slice(0, 60))}`)
    if ((await this.#running(kept.profile)) === handshake) {
      if (!cancel) await this.#signedIn(id)
      this.#settled.add(handshake)
      await this.#host.call('browsers.end', { name: handshake })
    }
    return this.#deps.status(id)
  }

  /** A browser was closed: where a person signed in in it, that is over. */
  async ended(name: string): Promise<void> {
    if (!name.startsWith(LOGIN) || this.#settled.delete(name) || this.#host.signal.aborted) return
    const all = await this.#host.store.all<KeptSite>(KEPT)
    const found = all.find(([, { profile }]) => loginName(profile) === name)
    if (!found) return
    const id = found[0].slice(KEPT.length)
    await this.#signedIn(id)
    await this.#deps.status(id)
  }

  /** The profile that a turn may use of a connection. */
  async profileFor(id: string, allowed: readonly string[] | undefined): Promise<AccountProfile> {
    const found = await this.#deps.entries().find(id)
    const isSite = found?.kind === 'browser' || found?.kind === 'identity'
    if (!found || !isSite || (allowed && !allowed.includes(id)))
      return refuse('not-found', `this turn has no signed-in account ${JSON.stringify(id.slice(0, 60))}`)
    if (!(await this.#deps.entries().isAccepted(found))) return refuse('conflict', unaccepted(id))
    return { ...(await this.#kept(id)), label: found.label, ...exitOf(found) }
  }

  async #signedIn(id: string): Promise<void> {
    await this.#host.store.set(KEPT + id, { ...(await this.#kept(id)), signedIn: Date.now() })
    await record(this.#host, {
      type: 'capability.signed-in',
      outcome: 'ok',
      actor: 'sandbox:capabilities',
      extra: { id },
    })
  }

  async #kept(id: string): Promise<KeptSite> {
    const before = await this.#host.store.get<KeptSite>(KEPT + id)
    if (before) return before
    const made: KeptSite = { profile: `site-${randomBytes(12).toString('hex')}` }
    await this.#host.store.set(KEPT + id, made)
    return made
  }

  /** The browser that runs on a profile. */
  async #running(profile: string): Promise<string | undefined> {
    if (!(await this.#host.serves('browsers.list'))) return undefined
    const { sessions } = await this.#host.call('browsers.list')
    return sessions.find(({ server, running }) => server === profile && running)?.name
  }

  /** Whether a person signed in, and the profile has something of the site. */
  async #signInOf({ id }: OpenEntry, url: string): Promise<CapabilityStatus> {
    const asked = failingStatus(`nobody has signed in: POST /capabilities/${id}/login opens a window`, 'sign-in')
    const kept = await this.#host.store.get<KeptSite>(KEPT + id)
    if (!kept) return asked
    const running = await this.#running(kept.profile)
    if (running === loginName(kept.profile))
      return failingStatus('a window for the sign-in is open: close it when you are signed in', 'sign-in')
    if (kept.signedIn === undefined) return asked
    // Its cookies cannot be read while a turn uses it.
    if (running !== undefined) return activeStatus()
    if (!(await this.#host.serves('browsers.kept'))) return failingStatus('this sandbox runs without browsers')
    const { hosts } = await this.#host.call('browsers.kept', { profile: kept.profile })
    const { hostname } = new URL(url)
    return hosts.some(host => hostname === host || hostname.endsWith(`.${host}`))
      ? activeStatus()
      : failingStatus(`the sign-in left nothing of ${hostname} in the browser: sign in again`, 'sign-in')
  }

  async #assertLinked(field: string, id: string | undefined, kind?: string): Promise<void> {
    if (id === undefined) return
    const found = await this.#deps.entries().find(id)
    if (!found || (kind !== undefined && found.kind !== kind))
      refuse(
        'conflict',
        `config.${field}: expected the id of a connection${kind === undefined ? '' : ` of kind ${kind}`}, `
          + `found ${JSON.stringify(id.slice(0, 60))}: connect it first`,
      )
  }

  /** What both kinds keep beside the record, and how it is removed and carried. */
  get #profiles(): Pick<KindHandler, 'forget' | 'rename' | 'busy'> {
    return {
      forget: async id => {
        const kept = await this.#host.store.get<KeptSite>(KEPT + id)
        if (kept && (await this.#running(kept.profile)) === loginName(kept.profile))
          this.#settled.add(loginName(kept.profile))
        if (kept && (await this.#host.serves('browsers.forget')))
          await this.#host.call('browsers.forget', { profile: kept.profile })
        await this.#host.store.delete(KEPT + id)
      },
      rename: async (id, to) => {
        const kept = await this.#host.store.get<KeptSite>(KEPT + id)
        if (!kept) return
        await this.#host.store.set(KEPT + to, kept)
        await this.#host.store.delete(KEPT + id)
      },
      busy: async id => {
        const kept = await this.#host.store.get<KeptSite>(KEPT + id)
        return kept !== undefined && (await this.#running(kept.profile)) !== undefined
      },
    }
  }

  get #browser(): KindHandler {
    const { cards } = this.#deps
    const cardOf = (config: ShownConfig) =>
      config.platform === OWN_SITE ? undefined : cards.brought('browser', config)
    return {
      kind: 'browser',
      secretFields: config =>
        config.platform === OWN_SITE
          ? ['password', SEED]
          : (cardOf(config)?.fields.flatMap(({ key, secret, totp }) => (secret || totp ? [key] : [])) ?? ['password']),
      mainSecret: config => cardOf(config)?.fields.find(({ secret, totp }) => secret && !totp)?.key ?? 'password',
      label: config => text(config, 'username') ?? cardOf(config)?.name ?? hostOf(text(config, 'url')),
      card: config => text(config, 'platform'),
      seedField: config => cardOf(config)?.fields.find(({ totp }) => totp)?.key,
      mark: config => cards.mark('browser', config),
      unfold: entry => (entry.config.platform === OWN_SITE || cardOf(entry.config) ? entry : undefined),
      check: async entry => {
        const { config, secrets } = entry
        const card = cardOf(config) ?? (config.platform === OWN_SITE ? SITE : undefined)
        if (!card)
          return refuse(
            'not-found',
            `there is no card ${JSON.stringify(config.platform)}: see GET /capabilities/catalog`,
          )
        const own = card.fields.some(({ key }) => key === EXIT_FIELD.key)
        assertFields(own ? card : { ...card, fields: [...card.fields, EXIT_FIELD] }, entry, 'platform')
        const url = this.addressOf('browser', entry)
        if (url === undefined || !URL.canParse(url))
          refuse('invalid', `config.url: expected an http or https address, found ${JSON.stringify(url ?? '')}`)
        webAddress(url!)
        if (secrets[SEED] !== undefined && !isSeed(secrets[SEED])) refuse('invalid', `config.${SEED}: ${SEED_EXPECTED}`)
        await this.#assertLinked('identity', text(config, 'identity'), 'identity')
        await this.#assertLinked('exit', text(config, 'exit'), 'exit')
      },
      apply: async (entry, report) => {
        await this.#kept(entry.id)
        report('it has a profile of a browser of its own, in which its sign-in stays')
        return this.#signInOf(entry, this.addressOf('browser', entry)!)
      },
      probe: async entry => {
        const url = this.addressOf('browser', entry)
        return url === undefined ? withoutCard() : this.#signInOf(entry, url)
      },
      ...this.#profiles,
    }
  }

  get #identity(): KindHandler {
    return {
      kind: 'identity',
      secretFields: () => ['password', SEED],
      mainSecret: () => 'password',
      label: config => text(config, 'email'),
      check: async entry => {
        const { config, secrets } = entry
        assertFields(IDENTITY, entry, 'email')
        if (!EMAIL.test(text(config, 'email') ?? '')) refuse('invalid', 'config.email: expected an address of e-mail')
        if (config.loginUrl !== undefined) {
          if (!URL.canParse(String(config.loginUrl)))
            refuse('invalid', 'config.loginUrl: expected an http or https address')
          webAddress(String(config.loginUrl))
        }
        if (secrets[SEED] !== undefined && !isSeed(secrets[SEED])) refuse('invalid', `config.${SEED}: ${SEED_EXPECTED}`)
        if (config.mailbox === entry.id) refuse('invalid', 'config.mailbox: expected another connection')
        await this.#assertLinked('mailbox', text(config, 'mailbox'))
        await this.#assertLinked('exit', text(config, 'exit'), 'exit')
      },
      apply: async ({ id, config, secrets }, report) => {
        report(`agents know the address ${text(config, 'email')}`)
        if (secrets.password !== undefined) report(`they fill its password in as {{secret:${id}/password}}`)
        if (secrets[SEED] !== undefined) report(`they fill a code in as {{code:${id}}}`)
        return activeStatus()
      },
      probe: async ({ config }) => {
        const mailbox = text(config, 'mailbox')
        if (mailbox === undefined || (await this.#deps.entries().find(mailbox))) return activeStatus()
        return failingStatus(`its mailbox ${mailbox} is not connected any more`)
      },
      release: async id => {
        const used = (await this.#deps.entries().all()).filter(({ config }) => config.identity === id)
        if (used.length > 0)
          refuse('conflict', `accounts depend on ${id}: ${used.map(each => each.id).join(', ')}; disconnect them first`)
      },
      ...this.#profiles,
    }
  }
}

const exitOf = ({ config }: Pick<RecordedEntry, 'config'>): { exit?: string } => {
  const exit = text(config, 'exit')
  return exit === undefined ? {} : { exit }
}

const unaccepted = (id: string): string =>
  `${id} came with the code or was changed by hand: a maintainer saves it first`

const LOGIN = 'login-'
const loginName = (profile: string): string => LOGIN + profile.slice('site-'.length)

const hostOf = (url: string | undefined): string | undefined =>
  url !== undefined && URL.canParse(url) ? new URL(url).hostname : undefined
