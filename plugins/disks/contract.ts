import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Size } from '../../sdk/types.js'
import type { CapabilityStatus, KindEntry, KindStep } from '../capabilities/contract.js'
import type { TcpPort } from '../system/contract.js'

/** The id of a share: that of its connection. */
export type DiskId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,59}$'>
/** How a share is spoken to. */
export type DiskProvider = 'smb' | 'nfs' | 'sshfs' | 'webdav'
/** `stale`: mounted, but its server does not answer. `unavailable`: nothing of this machine could mount it. */
export type DiskState = 'mounted' | 'mounting' | 'unmounted' | 'stale' | 'unavailable' | 'failed'
/** What carries a mount: a client of the kernel, or a program over FUSE. */
export type DiskVia = 'cifs' | 'nfs' | 'sshfs' | 'davfs2' | 'rclone'

type Server = string & tags.MinLength<1> & tags.MaxLength<255>
type User = string & tags.MinLength<1> & tags.MaxLength<256>
type Password = string & tags.Format<'password'> & tags.MinLength<1> & tags.MaxLength<1024>
type Sha256 = string & tags.Pattern<'^[0-9a-f]{64}$'>

/** A share with its state now. */
export interface DiskLink {
  id: DiskId
  provider: DiskProvider
  state: DiskState
  /** Such as `//server/share/path`, `server:/export`, `user@host:/path` or `https://host/path`; never a credential. */
  source: string
  /** The absolute folder on this machine, fixed by the id. */
  mountPoint: string
  /** The workspace path of the symbolic link to it, while there is one. */
  link?: string
  /** As the kernel reports it while mounted, else as configured. */
  readOnly: boolean
  /** Only while mounted. */
  via?: DiskVia
  /** Of the remote file system, where its server says; only while mounted. */
  totalBytes?: Size
  freeBytes?: Size
  /** When it was mounted. */
  since?: Millis
  /** It is mounted when the daemon starts. */
  autoMount: boolean
  /** Why it failed, is stale or unavailable; never a credential. */
  detail?: string
}
/** The shares of this sandbox. */
export interface DiskList {
  /** In the order in which they were added. */
  disks: DiskLink[]
}

/** Something that this machine lacks for a share. */
export interface DiskMissing {
  what: 'program' | 'device' | 'privilege' | 'kernel'
  /** A program, a device, a privilege or a client of the kernel, such as `sshfs`, `/dev/fuse` or `cifs`. */
  name: string
  /** How to get it. */
  install: string
}
/** What could carry the mounts of a share. */
export interface DiskCarrier {
  via: DiskVia
  usable: boolean
  /** Why it is not usable. */
  reason?: string
}
/** A process with an open file or its working folder in a share. */
export interface DiskUser {
  pid: Count
  /** The name of its program. */
  command: string
  /** How many files and folders of the share it holds. */
  paths: Count
}
/** The key or certificate of a server that is accepted, and no other. */
export interface DiskPin {
  kind: 'host-key' | 'certificate'
  /** In hexadecimal digits: of the key as the server sends it, or of the certificate in DER. */
  sha256: Sha256
  pinnedAt: Millis
}
/** A share with what could carry it, who uses it, and what its last mount wrote. */
export interface DiskDetail extends DiskLink {
  /** What this machine lacks to mount it; empty: it can be mounted. */
  missing: DiskMissing[]
  /** In the order in which they are tried. */
  carriers: DiskCarrier[]
  users: DiskUser[] & tags.MaxItems<50>
  pin?: DiskPin
  /** The last 200 lines of its last mount, without its secret values. */
  log: string
  logAt?: Millis
}

/** A folder of a Windows or Samba server. */
export interface SmbTarget {
  provider: 'smb'
  server: Server
  /** Default: 445. */
  port?: TcpPort
  share: string & tags.MinLength<1> & tags.MaxLength<80>
  /** A folder of the share. */
  path?: string & tags.MaxLength<1024>
  /** Default: a guest. */
  username?: User
  password?: Password
  domain?: string & tags.MinLength<1> & tags.MaxLength<128>
  /** Default: the newest one that both sides speak, 2.1 at least. */
  version?: '2.1' | '3.0' | '3.1.1'
}
/** A folder that a server exports over NFS. */
export interface NfsTarget {
  provider: 'nfs'
  server: Server
  export: string & tags.MaxLength<1024> & tags.Pattern<'^/'>
  /** Default: the newest one that both sides speak. */
  version?: '3' | '4' | '4.1' | '4.2'
}
/** A folder that is reached over ssh; it needs either `privateKey` or `password`. */
export interface SshfsTarget {
  provider: 'sshfs'
  host: Server
  /** Default: 22. */
  port?: TcpPort
  user: string & tags.MinLength<1> & tags.MaxLength<64>
  path: string & tags.MinLength<1> & tags.MaxLength<1024>
  /** In the form that OpenSSH writes, without a passphrase. */
  privateKey?: string & tags.Format<'password'> & tags.MinLength<1> & tags.MaxLength<16384>
  password?: Password
  /** Such as `ssh-ed25519 AAAA…`; default: the first one that the server shows is pinned. */
  hostKey?: string & tags.MinLength<1> & tags.MaxLength<16384>
}
/** A folder of a WebDAV server. */
export interface WebdavTarget {
  provider: 'webdav'
  url: string & tags.MaxLength<2048> & tags.Pattern<'^https?://'>
  username?: User
  password?: Password
  /** The certificate that is accepted although no authority of this machine vouches for it. */
  trustedCert?: string & tags.Pattern<'^sha256:[0-9a-f]{64}$'>
}
/** A share of a server, with the credential. */
export type DiskTarget = SmbTarget | NfsTarget | SshfsTarget | WebdavTarget

/** How a share is mounted. */
export interface DiskSettings {
  /** Default: `off`. */
  readOnly?: 'on' | 'off'
  /** Mount it when the daemon starts; default: `on`. */
  autoMount?: 'on' | 'off'
  /** What is cached on this machine, at most 2 GiB, of `webdav` shares and where rclone carries; default: `writes`. */
  cache?: 'off' | 'writes' | 'full'
  /** A path of the workspace at which a symbolic link leads to the share while it is mounted. */
  link?: string & tags.MinLength<1> & tags.MaxLength<200>
}
/** The configuration of a connection of kind `disk`. Secret fields: `password`, `privateKey`. */
export type DiskConfig = DiskTarget & DiskSettings

/** One step of a mount. */
export interface DiskLogLine {
  kind: 'log'
  message: string
}
/** The share's state changed. */
export interface DiskStateLine {
  kind: 'state'
  state: DiskState
}
/** It is mounted. */
export interface DiskResultLine {
  kind: 'result'
  ok: true
  disk: DiskLink
}
export type DiskLine = DiskLogLine | DiskStateLine | DiskResultLine

/** A share, an export or a folder that a server offers. */
export interface OfferedShare {
  name: string
  comment?: string
}
/** The certificate that a server shows. */
export interface OfferedCertificate {
  sha256: Sha256
  subject: string
  validTo: Millis
  /** An authority of this machine vouches for it. */
  trusted: boolean
}
/** What a server answered. */
export interface DiskProbe {
  /** Whether it accepted a connection and greeted as such a server does. */
  reachable: boolean
  latencyMs?: Count
  /** `untested`: no credential was given, or it could not be tried. */
  auth: 'ok' | 'refused' | 'untested'
  /** Shares of an SMB server, exports of an NFS server, else the folders in the path. */
  shares: OfferedShare[] & tags.MaxItems<500>
  /** Of `webdav` and `sshfs`, by allowed methods or permission bits; nothing is written. */
  writable?: boolean
  /** As the server shows it now. */
  hostKey?: string
  certificate?: OfferedCertificate
  /** What the server said. */
  detail?: string
}

/** What serves the connections of kind `disk` to group capabilities; `KindCalls` there says what each call does. */
export interface DiskKindCalls {
  /** Refuses a share that cannot be mounted. */
  'disks.check'(input: KindEntry): Ok
  /** Asks the server of a share; the last step is its status. */
  'disks.apply'(input: KindEntry): Stream<KindStep>
  /** Says how a share stands. */
  'disks.status'(input: { id: string; config: KindEntry['config'] }): CapabilityStatus
  /** Unmounts a share that is about to be removed. */
  'disks.release'(input: { id: string }): Ok
  /** Removes what is kept of a share. */
  'disks.forget'(input: { id: string }): Ok
  /** Carries what is kept of a share to another id. */
  'disks.rename'(input: { id: string; to: string }): Ok
}

/** The folders of shares that programs behind a wall see. */
export interface DiskFolders {
  /** Read-only. */
  read: string[]
  write: string[]
}

/** Shares of other machines as folders of this one. */
export interface DisksCalls extends DiskKindCalls {
  /** Gives the folders of the shares that are mounted, by the connections that a turn may use; left out: all. */
  'disks.forTurn'(input: { capabilities?: string[] }): DiskFolders
  /**
   * List the configured shares with their state now and, while mounted, their sizes.
   *
   * Each mounted share is asked by a program of its own for at most 3 s: one whose server does not answer is `stale`. A
   * command of a turn with the power `sandbox` lists, mounts and unmounts them too, where maintainers alone spoke and
   * the safety policy allows the action `sandbox.disks`.
   */
  'GET /disks'(): DiskList

  /**
   * Read one share: what could carry it and what is missing, who uses it, the pinned key, the log of its last mount.
   *
   * - 404: no such share
   */
  'GET /disks/{id}'(input: { id: DiskId }): DiskDetail

  /**
   * Ask a server what it offers, before anything is stored.
   *
   * It connects, signs in where a credential is given, and lists. Nothing is stored, mounted, or written on the server.
   * A server that refuses, or does not answer within 10 s, is an answer too.
   *
   * - 422: the target cannot be used, such as an address of this sandbox itself; the message names the field
   * - 501: this machine has no program that can ask such a server; the message says how to install one
   */
  'POST /disks/probe'(input: DiskTarget): DiskProbe

  /**
   * Mount a share, and watch each step; the last one has the share.
   *
   * The first usable carrier mounts it. The first host key of an ssh server is pinned; another one later is refused.
   * One that is mounted stays so. Closing the stream does not stop the mount. After a failure, which ends the stream
   * with `error`, nothing is left mounted.
   *
   * - 404: no such share
   * - 409: it is being mounted or unmounted, its folder is not empty or is another mount, or something has the path of
   *   its link
   * - 422: its configuration cannot be used; the message says why
   * - 424: the server refused or did not answer within 60 s, or it shows another key or certificate than the pinned one
   * - 501: a program, `/dev/fuse`, a privilege or a client of the kernel is missing; the message says how to get it
   * - 503: its credential is in the secret store, which is locked
   */
  'POST /disks/{id}/mount'(input: { id: DiskId }): Stream<DiskLine, { disk: DiskLink }>

  /**
   * Unmount a share, after writing what is still to be written, for at most 30 s.
   *
   * One that is not mounted stays so; a mount in progress is stopped. `force` detaches it although it is used or its
   * server does not answer: processes keep their open files, and unwritten data may be lost. It stays unmounted until
   * somebody mounts it, or the daemon starts and `autoMount` is on.
   *
   * - 404: no such share
   * - 409: it is in use, which the message says by whom, or data could not be written; both only without `force`
   * - 500: it is still mounted after `force`
   */
  'POST /disks/{id}/unmount'(input: {
    id: DiskId
    /** Default: false. */
    force?: boolean
  }): Ok
}

export const disksContract: Contract<DisksCalls> = {
  schema: () => typia.json.application<DisksCalls>(),
  request: typia.misc.createValidatePrune<Requests<DisksCalls>>(),
  reply: () => typia.createValidate<Replies<DisksCalls>>(),
}

/** Validates the configuration of a share. */
export const checkDiskConfig = typia.createValidate<DiskConfig>()
