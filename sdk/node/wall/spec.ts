import type { WallGrants } from '../../host.js'
import type { ReachFolder } from '../../reach.js'
import type { ProgramGroup, ProgramLimits } from '../limits/group.js'
import type { Env } from '../programs/list-env.js'

/** The kinds of walls. */
export type WallKind = 'bwrap' | 'unshare' | 'none'

/** One repository of a private copy. */
export interface WallGitdir {
  /** The repository's path from the workspace root; empty for the root. */
  readonly path: string
  /** The real path of the main repository's common git dir, read-only inside. */
  readonly common: string
  /** The real path of the copy's git dir, writable inside; it borrows the objects of `common`. */
  readonly own: string
  /** Patterns that git ignores in the copy, besides the repository's own and `/.sandbox/`. */
  readonly exclude?: readonly string[]
}

/**
 * Whose work runs: what `lands` by itself, what waits for a person who may land, or what an `outside` source woke. They
 * share nothing that one of them can write.
 */
export type Trust = 'lands' | 'waits' | 'outside'

/** A home folder behind the wall. Paths are real and absolute. */
export interface WallHome {
  /** The conversation that it is apart for; absent: a home that work which lands by itself may share. */
  readonly apart?: { readonly conversation: string; readonly trust: Trust }
  readonly dir: string
  /** Shown as `/tmp`. */
  readonly tmp: string
  /** The caches of tools. */
  readonly caches: string
  /** A file with the person's name and e-mail, for git. */
  readonly gitconfig: string
}

/** How to start a program in a network. */
export interface EnteredNetwork {
  /** The program and arguments that start a command in it; the command is appended. */
  readonly command: readonly [program: string, ...args: string[]]
  /** Variables for access to the outside, such as proxies. */
  readonly env: Env
  /** Whether it is owned by a user namespace in which the daemon's user is the superuser. */
  readonly inUserNamespace: boolean
  /** A file that replaces `/etc/resolv.conf`. */
  readonly resolver?: string
  /** A file with every authority whose certificates programs in it are to trust. */
  readonly authorities?: string
}

/** The network behind a wall. */
export interface WallNetwork {
  /**
   * How to start a program in it; undefined: not possible on this machine, so the program uses the machine's network.
   *
   * @throws A refusal if it could not be created.
   */
  enter(): Promise<EnteredNetwork | undefined>
}

/** What a process behind the wall sees. Paths are real and absolute. */
export interface WallSpec {
  readonly workspace: string
  /** The daemon's data folder; hidden except for the parts named here. */
  readonly data: string
  /** Default: no home folder, and an empty temporary `/tmp`. */
  readonly home?: WallHome
  /** Files and folders that the deployment makes visible. */
  readonly grants?: WallGrants
  /** Folders of other machines that answer now, asked for each wall: nothing here looks into them, which could hang. */
  readonly disks?: () => Promise<WallGrants>
  /** The working folder, as seen inside. */
  readonly cwd: string
  readonly env: Env
  /** The private copy, mounted in place of the workspace; `alsoAt` names a second place where it is mounted. */
  readonly copy?: { readonly dir: string; readonly gitdirs: readonly WallGitdir[]; readonly alsoAt?: string }
  /** The folder inside in which its git dirs are; default: `git` in the data folder. */
  readonly gitdirsAt?: string
  /** Shows nothing of the workspace; private copies can be mounted while the program runs (`showCopy`). */
  readonly later?: boolean
  /**
   * Shows only these folders of the workspace, and no git dir of a repository that is not completely writable; default:
   * the whole workspace.
   */
  readonly only?: readonly ReachFolder[]
  /** Makes the workspace or the private copy and their git dirs read-only. */
  readonly sealed?: boolean
  /** Paths that are read-only inside; missing ones are skipped. */
  readonly readOnly?: readonly string[]
  /** Shows the copy's own `.sandbox/`, writable, instead of the workspace's: for git, which may track it. */
  readonly ownSandbox?: boolean
  /** Parts of the workspace's `.sandbox/` that stay writable; missing ones are skipped. */
  readonly writable?: readonly string[]
  /** Folders for the end of PATH, as the program sees them. */
  readonly path?: readonly string[]
  /** Folders shown read-only at another place, such as the dependencies of the main checkout. */
  readonly shown?: readonly { readonly from: string; readonly to: string }[]
  /** Git dirs below the data folder that are visible at their own path. */
  readonly exposed?: readonly string[]
  /** The program gets its own terminal and controls it; it cannot inject input into another terminal. */
  readonly terminal?: boolean
  /** Sockets, files and folders to hide inside visible folders; missing ones are skipped. */
  readonly hide?: readonly string[]
  /** Runs as an ordinary user that may create namespaces, for a program with its own sandbox. Only with bubblewrap. */
  readonly ordinary?: boolean
  /** Default: the network of the machine. */
  readonly network?: WallNetwork
  /** The program has no network, in place of that of the machine. */
  readonly offline?: boolean
  /** The group whose programs share limits; default: no limits. */
  readonly limits?: ProgramGroup
}

/** The command to start instead, with this folder and exactly this environment. */
export interface Walled {
  readonly program: string
  readonly args: string[]
  readonly env: Env
  readonly cwd: string
  /** False if this machine has no wall: the program then has the rights of the daemon's user. */
  readonly enforced: boolean
  /** What to notify when the command is started. */
  readonly limits?: ProgramLimits
}

/**
 * One mount: an `empty` folder, `hide` a file, `bind` writable, `show` read-only, `seal` makes an existing mount
 * read-only, `link` makes a symbolic link to `from`. `why` is a short description.
 */
export type Mount = readonly [
  operation: 'empty' | 'hide' | 'bind' | 'show' | 'seal' | 'link',
  from: string,
  to: string,
  why?: string,
]
