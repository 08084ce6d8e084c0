/** Ids of other providers, and first segments of the paths of the daemon, where a provider has some of its own. */
export const RESERVED_IDS: ReadonlySet<string> = new Set(
  (
    'accounts activity agent agents approvals areas automations bundles capabilities chores ci cli console diff '
    + 'disks drafts endpoint endpoints events exit extensions git health history info ingest inventory issues '
    + 'listeners logs loops members metrics needs offload openapi outbox p panels personas ports prepush providers '
    + 'public push reference routed s safety script secrets sessions settings share shield skills system translator '
    + 'usage vpn webchat workflows workspace x'
  ).split(' '),
)
