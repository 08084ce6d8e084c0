import { refuse } from '../../../sdk/index.js'
import { ownEnv, ownProgram, missingProgram, run } from '../../../sdk/node/programs/run.js'

/** Where keys are kept outside the daemon's files, by id. */
export interface Keyring {
  /** Why there is none; undefined where there is one. */
  missing(): Promise<string | undefined>
  store(id: string, key: Buffer): Promise<void>
  /** The key, or undefined where the ring does not hold it or does not open. */
  find(id: string): Promise<Buffer | undefined>
  remove(id: string): Promise<void>
}

const SERVICE = 'sandbox-daemon'
const LABEL = 'Sandbox secrets'
/** A ring that is closed asks a person, who may not be there. */
const PATIENCE = 15_000
/** Where the ring of the session listens, and the home that some rings lie in. */
const SESSION = ['DBUS_SESSION_BUS_ADDRESS', 'XDG_RUNTIME_DIR', 'DISPLAY', 'WAYLAND_DISPLAY', 'HOME'] as const

/** How one system's program is asked. A key is written to its input: others can see arguments. */
interface Ring {
  readonly program: string
  readonly store: (id: string, hex: string) => readonly [args: readonly string[], input: string]
  readonly find: (id: string) => readonly string[]
  readonly remove: (id: string) => readonly string[]
}

const RINGS = {
  libsecret: {
    program: 'secret-tool',
    store: (id, hex) => [['store', `--label=${LABEL}`, 'service', SERVICE, 'key', id], hex],
    find: id => ['lookup', 'service', SERVICE, 'key', id],
    remove: id => ['clear', 'service', SERVICE, 'key', id],
  },
  keychain: {
    program: 'security',
    store: (id, hex) => [['-i'], `add-generic-password -U -a ${id} -s ${SERVICE} -l "${LABEL}" -w ${hex}\n`],
    find: id => ['find-generic-password', '-a', id, '-s', SERVICE, '-w'],
    remove: id => ['delete-generic-password', '-a', id, '-s', SERVICE],
  },
} satisfies { readonly [system: string]: Ring }
type System = keyof typeof RINGS

/**
 * The key ring of the operating system.
 *
 * @param locate Finds the ring's program.
 */
export const systemKeyring = (
  locate = ownProgram,
  system: System = process.platform === 'darwin' ? 'keychain' : 'libsecret',
): Keyring => {
  const ring: Ring = RINGS[system]
  const ask = async (args: readonly string[], input?: string) => {
    const program = (await locate(ring.program)) ?? (await missingProgram(ring.program))
    const session = Object.fromEntries(
      SESSION.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
    )
    const env = await ownEnv(session)
    return run(program, args, { cwd: '/', env, timeoutMs: PATIENCE, ...(input !== undefined && { input }) })
  }
  const find = async (id: string): Promise<Buffer | undefined> => {
    const { code, stdout } = await ask(ring.find(id))
    const hex = stdout.toString().trim()
    return code === 0 && /^(?:[0-9a-f]{2})+$/.test(hex) ? Buffer.from(hex, 'hex') : undefined
  }
  return {
    missing: async () => {
      if (!(await locate(ring.program)))
        return missingProgram(ring.program).catch((error: unknown) => (error as Error).message)
      const { code, stderr, timedOut } = await ask(ring.find('none'))
      // That nothing is found is no failure, and has no words.
      const failed = system === 'libsecret' ? code !== 0 && stderr.trim() !== '' : code !== 0 && code !== 44
      return failed || timedOut ? `the key ring does not answer ${ring.program}: ${lineOf(stderr)}` : undefined
    },
    store: async (id, key) => {
      const { code, stderr } = await ask(...ring.store(id, key.toString('hex')))
      if (code !== 0 || !(await find(id))?.equals(key))
        refuse('dependency', `the key ring did not keep the key: ${lineOf(stderr)}`)
    },
    find,
    remove: async id => void (await ask(ring.remove(id))),
  }
}

const lineOf = (text: string): string => text.trim().split('\n')[0]!.slice(0, 200) || 'it says nothing'
