import type { WallGrants } from '../../host.js'
import type { ReachFolder } from '../../reach.js'
import type { ProgramGroup } from '../limits/group.js'
import type { Env } from '../programs/list-env.js'

/** What this machine can build a wall of. */
export type WallKind = 'bwrap' | 'unshare' | 'none'

/** One repository of a private copy, as the wall needs to know it. */
export interface WallGitdir {
  /** The repository's path from the workspace root; empty for the root. */
  readonly path: string
  /** The real path of the main repository's common git dir: all of it is read-only inside. */
  readonly common: string
  /** The real path of the copy's own git dir, which is writable inside, and borrows the objects of the other. */
  readonly own: string
  /** Patterns git ignores in the copy, beside the repository's own and `/.sandbox/`. */
  readonly exclude?: readonly string[]
}

/** A home folder of the sandbox's own. Paths are real and absolute. */
export interface WallHome {
  readonly dir: string
  /** Shown as `/tmp`. */
  readonly tmp: string
  /** What tools can fetch or build again. */
  readonly caches: string
  /** A file with the person's name and e-mail, for git. */
  readonly gitconfig: string
}

/** A network as a program enters it. */
export interface EnteredNetwork {
  /** The program and arguments that start a command in it, which follows. */
  readonly command: readonly [program: string, ...args: string[]]
  /** What tells programs their way out. */
  readonly env: Env
  /** It is owned by a user namespace in which the daemon's user is the superuser. */
  readonly inUserNamespace: boolean
  /** A file in the place of the one in which names of hosts are resolved. */
  readonly resolver?: string
  /** A file with every authority whose certificates programs in it are to trust. */
  readonly authorities?: string
}

/** The network of whatever runs behind a wall. */
export interface WallNetwork {
  /**
   * What starts a program in it; undefined: this machine has none for it, and the program has that of the machine.
   *
   * @throws A refusal where it could not be made.
   */
  enter(): Promise<EnteredNetwork | undefined>
}

/** What a process behind the wall is to see. Paths are real and absolute. */
export interface WallSpec {
  readonly workspace: string
  /** The daemon's data folder: nothing of it is there but what is named. */
  readonly data: string
  /** Left out: there is no home folder, and `/tmp` is empty and gone at the end. */
  readonly home?: WallHome
  /** What the deployment adds. */
  readonly grants?: WallGrants
  /** The working folder, as seen inside. */
  readonly cwd: string
  readonly env: Env
  /** The private copy that takes the workspace's place. */
  readonly copy?: { readonly dir: string; readonly gitdirs: readonly WallGitdir[] }
  /**
   * Only these folders of the workspace are there, and no git dir of a repository that is not wholly workable; left
   * out: all of it.
   */
  readonly only?: readonly ReachFolder[]
  /** Nothing of the workspace or the private copy can be written, nor their histories. */
  readonly sealed?: boolean
  /** Seen inside, not writable there; what does not exist is left out. */
  readonly readOnly?: readonly string[]
  /** The copy keeps its own `.sandbox/`, writable, not the workspace's: for git, which may have it in its tree. */
  readonly ownSandbox?: boolean
  /** Parts of the workspace's `.sandbox/` that stay writable; what does not exist is left out. */
  readonly writable?: readonly string[]
  /** Folders shown read-only at another place, such as the dependencies of the main checkout. */
  readonly shown?: readonly { readonly from: string; readonly to: string }[]
  /** Git dirs below the data folder that stay where they are. */
  readonly exposed?: readonly string[]
  /** The program is started in a terminal made for it, and is to rule it: it can type nothing where others read. */
  readonly terminal?: boolean
  /**
   * Sockets, files and folders that must not be reached, also where they lie in what is shown; what does not exist is
   * left out.
   */
  readonly hide?: readonly string[]
  /**
   * The superuser is an ordinary user inside, who may make namespaces of their own: for a program with a wall of its
   * own. Only bubblewrap can.
   */
  readonly ordinary?: boolean
  /** Left out: it has that of the machine. */
  readonly network?: WallNetwork
  /** Whose programs together keep within limits; left out: it has those of the machine. */
  readonly limits?: ProgramGroup
}

/** The command to start instead, in this folder with exactly this environment. */
export interface Walled {
  readonly program: string
  readonly args: string[]
  readonly env: Env
  readonly cwd: string
  /** False where this machine has no wall: the program then runs with the rights of the daemon's user. */
  readonly enforced: boolean
  /** Is to be told when the command is started. */
  readonly limits?: ProgramGroup
}

/**
 * One mount: an `empty` folder, `hide` a file, `bind` writable, `show` read-only, `seal` what is mounted already, and
 * `link` a symbolic link to `from`. Last, in a few words, why it is there.
 */
export type Mount = readonly [
  operation: 'empty' | 'hide' | 'bind' | 'show' | 'seal' | 'link',
  from: string,
  to: string,
  why?: string,
]
