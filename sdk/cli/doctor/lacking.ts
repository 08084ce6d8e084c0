import { debianPackage } from '../../node/programs/own-programs.js'

/** What a group says in its manifest of what it uses. */
export interface GroupNeeds {
  readonly name: string
  readonly label: string
  readonly programs: readonly string[]
}

/** Something that a group uses and this machine lacks. */
export interface LackingThing {
  readonly what: 'program' | 'device' | 'privilege'
  readonly name: string
  /** The command that installs it, or what gives it. */
  readonly install: string
}

/** What one group lacks. */
export interface LackingGroup {
  readonly group: string
  readonly label: string
  readonly missing: readonly LackingThing[]
}

/** How this machine answers. */
export interface MachineFacts {
  hasProgram(name: string): Promise<boolean>
  hasDevice(path: string): Promise<boolean>
  /** Whether programs can run behind a wall. */
  hasWall(): Promise<boolean>
}

/** Programs that no package of Debian has, and where they come from. */
const ELSEWHERE: { readonly [program: string]: string } = {
  'llama-server': 'install llama.cpp (https://github.com/ggml-org/llama.cpp/releases), or name it in models.server',
  'nvidia-smi': 'install the driver of the graphics card (Debian, non-free: apt-get install nvidia-smi)',
}

/** Programs that come with the sandbox, or of which another one does the same. */
const OTHERWISE: { readonly [program: string]: readonly string[] } = {
  rg: ['sh'],
  unshare: ['bwrap'],
  chromium: ['chromium-headless-shell', 'google-chrome', 'google-chrome-stable', 'chromium-browser'],
  'wireguard-go': ['wg'],
}

const DEVICES: { readonly [group: string]: readonly string[] } = { disks: ['/dev/fuse'], vpn: ['/dev/net/tun'] }

/** How a program is installed. */
export const installOf = (program: string): string => ELSEWHERE[program] ?? `apt-get install ${debianPackage(program)}`

/** What each group lacks on a machine, by the names of groups; those that lack nothing are left out. */
export const lackingOn = async (
  groups: readonly GroupNeeds[],
  { hasProgram, hasDevice, hasWall }: MachineFacts,
): Promise<LackingGroup[]> => {
  const isThere = async (program: string): Promise<boolean> => {
    for (const name of [program, ...(OTHERWISE[program] ?? [])]) if (await hasProgram(name)) return true
    return false
  }
  const walled = await hasWall()
  const lacking: LackingGroup[] = []
  for (const { name: group, label, programs } of groups.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const missing: LackingThing[] = []
    for (const name of programs)
      if (!(await isThere(name))) missing.push({ what: 'program', name, install: installOf(name) })
    for (const name of DEVICES[group] ?? [])
      if (!(await hasDevice(name)))
        missing.push({ what: 'device', name, install: `give the sandbox the device (containers: --device ${name})` })
    if (group === 'agent' && !walled)
      missing.push({
        what: 'privilege',
        name: 'user namespaces',
        install:
          'sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000, or allow them to its container',
      })
    if (missing.length > 0) lacking.push({ group, label, missing })
  }
  return lacking
}

/** The one command that installs every missing program that Debian has; undefined: none is missing. */
export const installAll = (lacking: readonly LackingGroup[]): string | undefined => {
  const packages = lacking
    .flatMap(({ missing }) => missing)
    .flatMap(({ what, name }) => (what === 'program' && !(name in ELSEWHERE) ? [debianPackage(name)] : []))
  return packages.length === 0 ? undefined : `apt-get install ${[...new Set(packages)].sort().join(' ')}`
}
