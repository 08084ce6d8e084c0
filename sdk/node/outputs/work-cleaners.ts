import { cleanerOf, type LineCleaner } from './cleaner.js'

const STAMP = new RegExp(
  [
    ...[String.raw`^\[?\s*\d+\.\d{3,}\]\s`, String.raw`^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d`],
    ...[String.raw`^[A-Z][a-z]{2}\s+\d{1,2} \d\d:\d\d:\d\d`, String.raw`^\[?\d\d:\d\d:\d\d`],
    String.raw`^\{"(?:level|time|ts)":`,
  ].join('|'),
)
const NUMBERS = /0x[\da-f]+|[\da-f]{8,}|\d+/gi
const QUIET = /\b(?:debug|trace|verbose)\b|"level":(?:10|20|"(?:debug|trace)")/i
const FEWEST = 3

/** Lines of a log that say the same but for numbers, after the first ones, and lines of level debug and trace. */
const logs: LineCleaner = {
  id: 'logs',
  label: 'Repeated and debug lines of logs',
  commands: ['dmesg', 'journalctl', 'kubectl', 'docker', 'podman', 'docker-compose', 'stern', 'heroku', 'fly', 'pm2'],
  narrow: true,
  begin: () => {
    const known = new Map<string, number>()
    return line => {
      const stamp = STAMP.exec(line)
      if (!stamp) return false
      if (QUIET.test(line)) return true
      const shape = line.replace(NUMBERS, '#')
      const times = (known.get(shape) ?? 0) + 1
      if (known.size < 5_000 || times > 1) known.set(shape, times)
      return times > FEWEST
    }
  },
}

/** Cleaners for git, containers, clusters and logs. */
export const WORK_CLEANERS: readonly LineCleaner[] = [
  cleanerOf(
    'git',
    'What git says while it transfers, and its hints',
    ['git', 'git-lfs', 'gh', 'hg'],
    [
      /^(?:remote: )?(?:Enumerating|Counting|Compressing|Receiving|Unpacking|Writing|Resolving|Indexing)\b/,
      /^(?:remote: )?(?:Checking out|Updating|Filtering|Delta compression|Total \d+ \(delta|Auto packing)\b/,
      /^hint: /,
      /^\s*\(use "git /,
      /^\s*create mode \d+ /,
      /^Preparing worktree|^Already on |^Your branch is up to date /,
    ],
  ),
  cleanerOf(
    'containers',
    'Layers and steps of Docker, Podman and Buildah',
    ['docker', 'podman', 'buildah', 'docker-compose', 'nerdctl', 'skopeo', 'kaniko'],
    [
      /^\s*[\da-f]{12}: (?:Pulling fs layer|Waiting|Verifying Checksum|Download complete|Downloading|Extracting)/,
      /^\s*[\da-f]{12}: (?:Pull complete|Already exists|Preparing|Pushed|Pushing|Layer already exists)/,
      /^\s*[\da-f]{12}: Mounted from/,
      /^(?:Copying|Getting|Writing|Storing|Trying to pull) (?:blob|config|image|manifest|signatures|\S+\.\.\.|")/,
      /^Resolved (?:blob|config|image|manifest|signatures|\S+\.\.\.|")/,
      /^#\d+ (?:sha256:|extracting |transferring |resolve |CACHED|DONE |\.\.\.|exporting |writing |naming )/,
      /^#\d+ (?:preparing |\[internal\]|\[auth\])/,
      /^#\d+ (?:[\d.]+ (?:Get|Hit|Ign):\d+ |[\d.]+ (?:Unpacking|Selecting|Preparing to unpack|Setting up) )/,
      /^\s*(?:=> )+(?:=> )?(?:CACHED |extracting |sha256:|transferring |exporting |writing |naming |resolve )/,
      /^\s*(?:=> )+(?:=> )?\[internal\]/,
      /^\s*---> (?:Running in )?[\da-f]{12}$/,
      /^\s*---> Using cache$/,
      /^(?:Removing|Removed) intermediate container [\da-f]{12}$/,
      /^--> (?:Using cache )?[\da-f]{8,}$/,
      /^\s*(?:Container|Network|Volume|Image) \S+\s+(?:Creating|Created|Starting|Started|Stopping|Stopped)\s*$/,
      /^\s*(?:Container|Network|Volume|Image) \S+\s+(?:Removing|Removed|Running|Waiting|Healthy|Pulling)\s*$/,
      /^\s*(?:Container|Network|Volume|Image) \S+\s+Pulled\s*$/,
    ],
  ),
  cleanerOf(
    'clusters',
    'Unchanged resources of kubectl, Helm, Terraform and Ansible',
    ['kubectl', 'helm', 'terraform', 'tofu', 'ansible', 'ansible-playbook', 'pulumi'],
    [
      /^\S+: (?:Refreshing state\.\.\.|Reading\.\.\.|Read complete after)/,
      /^\S+: Still (?:creating|destroying|modifying|reading)\.\.\./,
      /^\S+\/\S+ unchanged$/,
      /^- (?:Finding|Installing|Reusing previous version of|Using previously-installed) \S+/,
      /^ok: \[[^\]]+\]$|^skipping: \[[^\]]+\]$/,
    ],
  ),
  logs,
]
