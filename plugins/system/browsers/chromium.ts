import { spawn, type ChildProcess } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { Browser } from 'playwright-core'
import { type Host, refuse, ignored } from '../../../sdk/index.js'
import type { Program } from '../../../sdk/kernel.js'
import { isOwnProgram } from '../../../sdk/node/programs/own-programs.js'
import { killWalled, listEnv, missingProgram, ownProgram } from '../../../sdk/node/programs/run.js'
import { isOfSystem } from '../../../sdk/node/wall/system.js'
import { walled, type Walled } from '../../../sdk/node/wall/wall.js'
import { pipeTransport } from './pipe.js'
import { BROWSER_QUOTA, type DiskQuota } from './quota.js'
import { trustInBrowser } from './trusted-authorities.js'

/** The size of a page, in CSS pixels. */
export const VIEWPORT = { width: 1280, height: 800 } as const

/** A running Chromium. */
export interface Chromium {
  readonly browser: Browser
  /** Resolves when its process is gone, for whatever reason. */
  readonly ended: Promise<void>
  /** Terminates it, and kills it after two seconds. */
  end(): Promise<void>
}

/** Dependencies of starting Chromium. */
export interface ChromiumDeps extends Pick<Host, 'place' | 'log' | 'signal'> {
  readonly room?: DiskQuota
}

/** The program itself; the wrapper scripts would add extensions and keys of the system. */
const PLACES = [
  '/usr/lib/chromium/chromium',
  '/usr/lib64/chromium-browser/chromium-browser',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]
const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

const GRACE_MS = 2000
const START_MS = 30_000
const CACHE_BYTES = 32 * 1024 * 1024

const FEATURES_OFF = [
  'MediaRouter',
  'DialMediaRouteProvider',
  'OptimizationHints',
  'Translate',
  'AutofillServerCommunication',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'PreconnectToSearch',
  'NetworkTimeServiceQuerying',
  'CertificateTransparencyComponentUpdater',
  'LensOverlay',
  'AimEnabled',
  'DestroyProfileOnBrowserClose',
  'PaintHolding',
  'InterestFeedContentSuggestions',
  'Prerender2',
  'WebTransport',
  'StaticStorageQuota',
]

/** Chromium makes no requests by itself, and all requests of its pages go through the gate. */
const flags = (gate: number, profile: string, pages: number): string[] => [
  '--headless',
  '--remote-debugging-pipe',
  `--user-data-dir=${profile}`,
  `--window-size=${VIEWPORT.width},${VIEWPORT.height}`,
  `--proxy-server=http://127.0.0.1:${gate}`,
  '--proxy-bypass-list=<-loopback>',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--disable-quic',
  '--no-first-run',
  '--no-default-browser-check',
  '--no-pings',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
  '--disable-extensions',
  '--disable-breakpad',
  '--disable-domain-reliability',
  '--disable-client-side-phishing-detection',
  '--disable-search-engine-choice-screen',
  '--metrics-recording-only',
  '--disable-component-extensions-with-background-pages',
  '--disable-print-preview',
  '--deny-permission-prompts',
  `--disk-cache-size=${CACHE_BYTES}`,
  `--media-cache-size=${CACHE_BYTES}`,
  '--password-store=basic',
  '--use-mock-keychain',
  '--mute-audio',
  '--disable-back-forward-cache',
  '--force-color-profile=srgb',
  `--disable-features=${FEATURES_OFF.join(',')}`,
  `--enable-features=SkipListAccountsWithoutGaiaCookies,StorageQuotaSettings:PoolSizeBytes/${pages}`,
  'about:blank',
]

/** Finds the browser of this machine, or the one that `SANDBOX_CHROMIUM` names, which may be in the home folder. */
export const findChromium = async (): Promise<string | undefined> => {
  const named = process.env.SANDBOX_CHROMIUM
  if (named) return (await isOwnProgram(named, { named: true })) ? named : undefined
  for (const path of PLACES) if (await isOwnProgram(path)) return path
  for (const name of NAMES) {
    const found = await ownProgram(name)
    if (found) return found
  }
  return undefined
}

/** Its entry in `GET /info`, found without starting it. */
export const chromiumProgram = async (): Promise<Program> => ({
  name: 'chromium',
  present: (await findChromium()) !== undefined,
  neededBy: ['system'],
  install: process.platform === 'darwin' ? 'brew install --cask chromium' : 'apt-get install chromium',
})

/**
 * Starts Chromium behind the wall: it sees its own folder of the data folder, and nothing of the workspace and of
 * people's own folders.
 */
export const startChromium = async (
  { place, log, signal, room = BROWSER_QUOTA }: ChromiumDeps,
  folder: string,
  gate: number,
): Promise<Chromium> => {
  const program =
    (await findChromium())
    ?? (await missingProgram('chromium', [process.env.SANDBOX_CHROMIUM ?? [], ...PLACES, ...NAMES].flat()))
  const [profile, home, empty] = ['profile', 'home', 'empty'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const each of [profile, home, empty]) await mkdir(each, { recursive: true, mode: 0o700 })
  await trustInBrowser({ place, log, signal }, { folder, home, empty })
  const env = listEnv({ HOME: home, TMPDIR: '/tmp', DBUS_SESSION_BUS_ADDRESS: 'disabled:' })
  const attempt = async (own: boolean): Promise<Chromium> => {
    const args = [...(own ? [] : ['--no-sandbox']), ...flags(gate, profile, room.pages)]
    const spec = {
      workspace: place.workspace,
      data: place.data,
      cwd: place.workspace,
      env,
      hide: place.hidden,
      ordinary: own,
      copy: { dir: empty, gitdirs: [] },
      ownSandbox: true,
      exposed: [profile, home],
      readOnly: isOfSystem(program) ? [] : [dirname(program)],
    }
    return connected(await walled(spec, program, args), home, signal)
  }
  try {
    return await attempt(true)
  } catch (error) {
    signal.throwIfAborted()
    const started = await attempt(false)
    log.warn('chromium runs without its own sandbox for pages, which does not start on this machine', {
      error: String(error),
    })
    return started
  }
}

const connected = async (
  { program, args, env, cwd, enforced }: Walled,
  artifactsDir: string,
  signal: AbortSignal,
): Promise<Chromium> => {
  signal.throwIfAborted()
  const { chromium } = await import('playwright-core')
  const child = spawn(program, args, {
    cwd,
    env: { ...env },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  })
  const said = lastWords(child)
  const ended = new Promise<void>(gone => child.once('close', () => gone()).once('error', () => gone()))
  const kill = () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    if (enforced) killWalled(child.pid)
    else process.kill(-child.pid, 'SIGKILL')
  }
  const to = child.stdio[3] as Writable
  const end = async () => {
    const late = setTimeout(kill, GRACE_MS)
    to.end()
    await ended.finally(() => clearTimeout(late))
  }
  try {
    const transport = pipeTransport(to, child.stdio[4] as Readable)
    const gone = ended.then(() => Promise.reject(new Error(`chromium ended as it started: ${said()}`)))
    gone.catch(ignored('the caller that awaits it gets the failure'))
    const browser = await Promise.race([chromium.connectOverCDP(transport, { timeout: START_MS, artifactsDir }), gone])
    return { browser, ended, end }
  } catch (error) {
    kill()
    await ended
    signal.throwIfAborted()
    return refuse('failed', `chromium did not start: ${said() || (error as Error).message}`, { cause: error })
  }
}

/** The end of its standard error, bounded because a page can make it write without end. */
const lastWords = (child: ChildProcess): (() => string) => {
  let text = ''
  child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
    text = (text + piece).slice(-2000)
  })
  return () => text.trim().split('\n').at(-1)?.slice(-300) ?? ''
}
