import { text as textOf } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { ProviderAccount, ProviderSignIn, SignInStart } from '../../../plugins/accounts/contract.js'
import type { Client } from '../../client.js'
import { connected } from '../daemon/connection.js'
import { askedAs } from '../calls/asked-as.js'
import { asked, printResult } from '../terminal/asked.js'
import { askHidden } from '../terminal/hidden.js'
import { SELF } from '../terminal/own-name.js'
import { oneLine, plain, quoted } from '../terminal/text.js'
import { say } from '../terminal/write.js'
import { CONNECTION, EXIT, misused, type GivenArguments, type Terminal, type Verb } from '../verb.js'

const FLOWS: readonly string[] = ['redirect', 'code', 'device', 'key'] satisfies ProviderSignIn['flow'][]
const EXPECTED = 'expected account list [PROVIDER], account add PROVIDER or account remove PROVIDER ID'
const LOOK_MS = 1000

/** Signs in to providers of models, and lists and disconnects accounts. */
export const accountVerb: Verb = {
  name: 'account',
  also: 'accounts',
  group: 'accounts',
  usage: '[list [PROVIDER] | add PROVIDER [--flow FLOW] [--key-stdin] | remove PROVIDER ID]',
  summary: 'use accounts of model providers',
  examples: [
    'account',
    'account list anthropic',
    'account add anthropic --key-stdin',
    'account add openai',
    'account remove openai a1b2c3d4e5f6a7b8c9',
  ],
  notes: [
    'The command call providers.list names the providers, and how one signs in at each.',
    'Without --key-stdin a key or code is asked for at the terminal, and not shown.',
    'If the browser is on another machine: --flow redirect --key-stdin takes the address that it ends at.',
    'A turn runs on it with run --agent PROVIDER; it gets the account with most room.',
  ],
  ids: { PROVIDER: ['providers', 'list'] },
  flags: {
    ...CONNECTION,
    flow: { value: 'FLOW', choices: FLOWS, help: 'add: how to sign in; default: the first way of the provider' },
    label: { value: 'LABEL', help: 'add: the name that people see' },
    'client-id': {
      value: 'ID',
      help: 'add: your client at a provider that knows none of the sandbox; default: that of its definition',
    },
    'key-stdin': { help: 'add: read the key, code or address from standard input' },
  },
  most: 3,
  run: (terminal, given) => {
    const [what = 'list', provider, id] = given.args
    if (provider === undefined && what === 'list') return listedAll(terminal, given)
    if (provider !== undefined && what === 'list' && id === undefined) return listed(terminal, given, provider)
    if (provider !== undefined && what === 'add' && id === undefined) return added(terminal, given, provider)
    if (provider !== undefined && what === 'remove' && id !== undefined)
      return asked(
        terminal,
        given,
        (client, options) => client.call('POST /accounts/{provider}/disconnect', { provider, id }, options),
        () => `disconnected ${plain(id)}`,
      )
    return misused(`${EXPECTED}, found account ${given.args.join(' ')}`)
  },
}

const listed = (terminal: Terminal, given: GivenArguments, provider: string): Promise<number> =>
  askedAs(
    terminal,
    given,
    ['accounts', 'list'],
    (client, options) => client.call('GET /accounts/{provider}', { provider }, options),
    { input: { provider } },
  )

/** The accounts of all providers. */
const listedAll = (terminal: Terminal, given: GivenArguments): Promise<number> =>
  askedAs(
    terminal,
    given,
    ['accounts', 'list'],
    async (client, options) => {
      const { providers } = await client.call('GET /providers', undefined, options)
      const used = providers.filter(({ accounts }) => accounts > 0)
      const lists = await Promise.all(
        used.map(async ({ id: provider }) => {
          const { accounts } = await client.call('GET /accounts/{provider}', { provider }, options)
          return accounts.map(account => ({ provider, ...account }))
        }),
      )
      return { accounts: lists.flat() }
    },
    { columns: { provider: 'provider' }, none: 'no accounts; {sandbox} providers lists where to connect one' },
  )

const added = (terminal: Terminal, given: GivenArguments, provider: string): Promise<number> => {
  if (given.on('key-stdin') && given.text('token-file') === '-')
    misused('standard input can hold the key or the control token, not both')
  const [flow, label, clientId] = [given.text('flow'), given.text('label'), given.text('client-id')]
  return connected(terminal, given, async ({ client }) => {
    const asked = {
      ...(flow !== undefined && { flow: flow as ProviderSignIn['flow'] }),
      ...(label && { label }),
      ...(clientId !== undefined && { clientId }),
    }
    const started = await client.call('POST /accounts/{provider}/login/start', { provider, ...asked })
    const pastes = given.on('key-stdin') && started.flow === 'redirect'
    const account =
      started.finish === 'none' && !pastes
        ? await approved(terminal, client, provider, started)
        : await finished(terminal, given, client, provider, started)
    if (!account) return EXIT.failed
    return printResult(terminal, given, account, () => [
      `connected ${oneLine(account.label)} (${plain(account.id)})`,
      `next: ${SELF} run "TEXT" --agent ${quoted(provider)}`,
    ])
  })
}

/** Completes a sign-in with what its page shows. */
const finished = async (
  terminal: Terminal,
  given: GivenArguments,
  client: Client,
  provider: string,
  { handshake, url, finish }: SignInStart,
): Promise<ProviderAccount> => {
  const what = finish === 'key' ? 'key' : finish === 'code' ? 'code' : 'address it ends at'
  // A code or address comes from the page, so that is named before standard input is read.
  if (given.on('key-stdin') && finish !== 'key')
    say(terminal, `open ${oneLine(url)}\nthen give the ${what} on standard input\n`)
  const text = given.on('key-stdin')
    ? await textOf(terminal.in)
    : await askHidden(terminal, `open ${oneLine(url)}\nthen enter the ${what}: `)
  const value = text.trim()
  if (value === '') misused(`expected the ${what}, found nothing`)
  const field = finish === 'key' ? { key: value } : finish === 'code' ? { code: value } : { redirectUrl: value }
  return client.call('POST /accounts/{provider}/login/finish', { provider, handshake, ...field })
}

/** Waits until a person signed in on the page; undefined: it ended otherwise. */
const approved = async (
  terminal: Terminal,
  client: Client,
  provider: string,
  { handshake, url, code }: SignInStart,
): Promise<ProviderAccount | undefined> => {
  say(terminal, `open ${oneLine(url)}${code === undefined ? '' : `\nand enter ${oneLine(code)}`}\n`)
  for (;;) {
    await delay(LOOK_MS, undefined, { signal: terminal.signal })
    const { accounts, signIns } = await client.call('GET /accounts/{provider}', { provider })
    const attempt = signIns.find(each => each.handshake === handshake)
    if (attempt?.state === 'done') return accounts.find(({ id }) => id === attempt.account)
    if (attempt?.state === 'waiting' || attempt?.state === 'exchanging') continue
    say(
      terminal,
      `the sign-in is ${attempt?.state ?? 'over'}${attempt?.detail ? `: ${oneLine(attempt.detail)}` : ''}\n`,
    )
    return undefined
  }
}
