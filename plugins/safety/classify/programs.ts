import type { CommandClass } from '../../settings/contract.js'
import { gitClasses } from './git.js'
import { hasOption, hostOf, isDestructiveSql, isLocalHost, operands } from './words.js'

type Judge = (words: readonly string[], program: string) => readonly CommandClass[]

const NONE: readonly CommandClass[] = []
const of =
  (...classes: CommandClass[]): Judge =>
  () =>
    classes
const when = (holds: boolean, ...classes: CommandClass[]): readonly CommandClass[] => (holds ? classes : NONE)
const verb = (words: readonly string[], at = 0): string => operands(words)[at] ?? ''

const OUT = 'network.outbound'

/** A program that makes requests: classed unless every host among its words is this machine. */
const asksHosts: Judge = words => {
  const hosts = operands(words).flatMap(word => hostOf(word) ?? [])
  return when(hosts.length === 0 || !hosts.every(isLocalHost), OUT)
}

const remoteCopy: Judge = words => {
  const far = operands(words).filter(word => /^[^/]+:/.test(word))
  return when(
    far.some(word => !isLocalHost(/^(?:[^@/]*@)?([^:/]+):/.exec(word)?.[1] ?? '')),
    OUT,
  )
}

const sql: Judge = (words, program) => {
  // An option looks like a comment of SQL.
  const text = words
    .map(word => (word.startsWith('-') ? word.slice(word.indexOf('=') + 1 || word.length) : word))
    .join(' ')
  const host = hostOf(words.find(word => word.includes('://')) ?? '') ?? optionValue(words, '-h', '--host')
  const drops = isDestructiveSql(text) || (program === 'redis-cli' && /\bflush(?:all|db)\b/i.test(text))
  return [
    ...when(drops, 'database.destructive'),
    ...when(host !== undefined && !isLocalHost(host) && !host.startsWith('/'), OUT),
  ]
}

const optionValue = (words: readonly string[], ...names: readonly string[]): string | undefined => {
  const at = words.findIndex(word => names.some(name => word === name || word.startsWith(`${name}=`)))
  if (at < 0) return undefined
  return words[at]!.includes('=') ? words[at]!.slice(words[at]!.indexOf('=') + 1) : words[at + 1]
}

const INSTALLS = new Set(
  'install i ci add update upgrade up audit view info outdated dlx exec create init x'.split(' '),
)
const jsPackages: Judge = words => {
  const [first = '', second = ''] = operands(words)
  const publishes =
    ['publish', 'unpublish', 'deprecate', 'dist-tag'].includes(first) || (first === 'npm' && second === 'publish')
  return publishes ? ['package.publish', OUT] : when(INSTALLS.has(first), OUT)
}

/** Programs of package registries: what publishes, and what asks the registry. */
const registry =
  (publishes: readonly string[], asks: readonly string[]): Judge =>
  words => {
    const [first = '', second = ''] = operands(words)
    const does = (names: readonly string[]) => names.includes(first) || names.includes(`${first} ${second}`)
    return does(publishes) ? ['package.publish', OUT] : when(does(asks), OUT)
  }

/** Programs of clusters and clouds, by words that change something there. */
const cloud =
  (changes: RegExp, secrets?: RegExp): Judge =>
  words => {
    const said = operands(words).slice(0, 6).join(' ')
    return [
      OUT,
      ...when(changes.test(said) && !hasOption(words, undefined, 'dry-run', 'dryrun'), 'infra.destructive'),
      ...when(secrets?.test(said) === true, 'secrets.access'),
    ]
  }

const docker: Judge = words => {
  const [first = '', second = ''] = operands(words)
  const pushes = first === 'push' || (first === 'image' && second === 'push') || hasOption(words, undefined, 'push')
  if (pushes) return ['package.publish', OUT]
  const pair = `${first} ${second}`
  return [
    ...when(['pull', 'login', 'search'].includes(first), OUT),
    ...when(
      /^(?:system|volume|image|container|network|builder) prune$|^volume rm$|^stack (?:rm|deploy)$/.test(pair),
      'infra.destructive',
    ),
    ...when(words.includes('--privileged'), 'system.privileged'),
  ]
}

const gh: Judge = words => {
  const pair = operands(words).slice(0, 2).join(' ')
  return [
    OUT,
    ...when(/^release (?:create|upload|edit|delete)$/.test(pair), 'package.publish'),
    ...when(/^repo (?:delete|archive)$/.test(pair), 'git.destructive'),
    ...when(/^(?:pr|mr) merge$/.test(pair), 'git.publish'),
    ...when(/^auth token$|^secret /.test(pair), 'secrets.access'),
  ]
}

const rm: Judge = words =>
  when(
    hasOption(words, 'r', 'recursive') || hasOption(words, 'R') ? hasOption(words, 'f', 'force') : false,
    'files.destructive',
  )

const kill: Judge = (words, program) => {
  const others =
    program === 'kill'
      ? operands(words).some(word => word === '1') || words.includes('-1')
      : hasOption(words, 'u', 'user', 'euid', 'uid') || hasOption(words, 'U')
  return when(others, 'system.privileged')
}

const RESETS = new RegExp(
  String.raw`migrate reset\b|--force-reset|\bdb[: ](?:drop|reset|wipe|schema:load|purge)`
    + '|migrate:(?:fresh|re)|schema:drop|downgrade base',
)
const AWS_CHANGES = new RegExp(
  String.raw`\b(?:delete|terminate|remove|deregister|purge|destroy|detach|revoke|stop|create|put|update|modify|run)-`
    + String.raw`|\b(?:s3 (?:rm|rb|mb|sync|mv)|deploy)\b`,
)

const SETS_IP = /\b(?:add|del|delete|set|change|replace|flush)\b/

const DATABASES =
  'psql mysql mariadb sqlite3 sqlite duckdb sqlcmd mongosh mongo redis-cli clickhouse-client ' + 'cockroach bq snowsql'

const PRIVILEGED =
  'sudo doas su pkexec runuser mount umount iptables ip6tables nft ufw firewall-cmd modprobe insmod '
  + 'rmmod chroot nsenter useradd userdel usermod groupadd groupdel passwd visudo setcap reboot '
  + 'shutdown poweroff halt swapoff swapon losetup cryptsetup dmsetup launchctl fdisk parted '
  + 'mkinitramfs update-grub setenforce auditctl'

const JUDGES: { readonly [programs: string]: Judge } = {
  git: gitClasses,
  'hg svn': words => when(['push', 'commit', 'ci'].includes(verb(words)), 'git.publish', OUT),
  rm,
  'rimraf del-cli': of('files.destructive'),
  'remove-item': words => when(/-r/i.test(words.join(' ')) && /-fo/i.test(words.join(' ')), 'files.destructive'),
  'shred srm wipe wipefs mkswap mke2fs blkdiscard sgdisk sfdisk': of('files.destructive'),
  dd: words =>
    when(
      words.some(word => /^of=\/dev\/(?!null$|zero$|std|fd)/.test(word)),
      'files.destructive',
    ),
  find: words => when(words.includes('-delete'), 'files.destructive'),
  rsync: words => [
    ...remoteCopy(words, 'rsync'),
    ...when(
      words.some(word => /^--del/.test(word)),
      'files.destructive',
    ),
  ],
  'curl wget http https xh aria2c httpie wscat websocat lynx w3m links': asksHosts,
  'nc ncat netcat socat telnet ftp sftp ssh mosh ping traceroute dig nslookup host whois nmap': asksHosts,
  scp: remoteCopy,
  openssl: words => when(verb(words) === 's_client', OUT),
  'npm pnpm yarn bun lerna': jsPackages,
  'npx bunx pnpx uvx pipx': of(OUT),
  'pip pip3 uv poetry conda mamba': registry(
    ['publish', 'upload'],
    ['install', 'download', 'add', 'sync', 'update', 'pip install'],
  ),
  'twine flit hatch anaconda': registry(['upload', 'publish'], []),
  cargo: registry(['publish', 'yank', 'owner'], ['install', 'fetch', 'add', 'update', 'search']),
  go: registry([], ['get', 'install', 'mod download', 'mod tidy']),
  gem: registry(['push', 'yank'], ['install', 'update', 'fetch']),
  'bundle composer': registry([], ['install', 'update', 'require']),
  'mvn gradle gradlew mvnw sbt': words =>
    when(
      words.some(word => /^(?:deploy|publish\w*|:?\w*:publish\w*)$/.test(word)),
      'package.publish',
      OUT,
    ),
  'dotnet nuget': registry(['nuget push', 'push'], ['restore', 'add package', 'install']),
  'mix hex luarocks dart flutter pub jsr deno': registry(
    ['hex.publish', 'upload', 'publish', 'pub publish'],
    ['deps.get', 'install', 'pub get'],
  ),
  'vsce ovsx changeset semantic-release goreleaser': (words, program) =>
    when(program === 'semantic-release' || ['publish', 'release'].includes(verb(words)), 'package.publish', OUT),
  'skopeo crane oras': registry(['copy', 'push', 'append'], ['pull', 'inspect']),
  'docker podman nerdctl buildah': docker,
  'gh glab hub': gh,
  'apt apt-get dnf yum apk pacman zypper brew snap flatpak': words => [
    ...when(!['list', 'search', 'show', 'info'].includes(verb(words)), OUT),
  ],
  [DATABASES]: sql,
  'dropdb dropuser': of('database.destructive'),
  mysqladmin: words => when(verb(words) === 'drop', 'database.destructive'),
  'prisma sequelize rails rake artisan supabase knex typeorm alembic drizzle-kit': words =>
    when(RESETS.test(words.join(' ')), 'database.destructive'),
  'terraform tofu terragrunt': words =>
    when(
      /^(?:destroy|apply|taint|run-all (?:apply|destroy)|state (?:rm|push))/.test(operands(words).join(' ')),
      'infra.destructive',
    ).concat(verb(words) ? [OUT] : []),
  pulumi: words =>
    when(/^(?:up|update|destroy|cancel|stack rm)/.test(operands(words).join(' ')), 'infra.destructive', OUT),
  'kubectl oc': cloud(
    /\b(?:delete|apply|drain|replace|patch|create|scale|rollout undo|rollout restart|cordon|edit)\b/,
    /\bget secrets?\b/,
  ),
  helm: words =>
    verb(words) === 'push'
      ? ['package.publish', OUT]
      : cloud(/^(?:install|upgrade|uninstall|delete|rollback)\b/)(words, 'helm'),
  aws: cloud(AWS_CHANGES, /\b(?:get-secret-value|get-parameters?|get-login-password|get-session-token)\b/),
  'gcloud gsutil': cloud(
    /\b(?:delete|deploy|create|update|reset|rm|rb)\b/,
    /\b(?:secrets versions access|print-access-token)\b/,
  ),
  az: cloud(/\b(?:delete|purge|create|update|deploy)\b/, /\b(?:keyvault secret (?:show|download)|get-access-token)\b/),
  'doctl hcloud linode-cli scw oci ibmcloud eksctl kops': cloud(/\b(?:delete|destroy|create|rm|update|reset)\b/),
  'fly flyctl heroku vercel netlify wrangler cdk sam serverless sls nomad vagrant railway render': cloud(
    /\b(?:destroy|delete|deploy|remove|rm|stop|up|apps:destroy|sites:delete|pg:reset)\b/,
  ),
  'ansible-playbook ansible argocd flux': of('infra.destructive', OUT),
  [PRIVILEGED]: of('system.privileged'),
  sysctl: words =>
    when(
      words.some(word => word.includes('=') || /^-(?:w|p)/.test(word)),
      'system.privileged',
    ),
  'systemctl service initctl': words =>
    when(
      !/^(?:status|show|cat|list-\S+|is-\S+|--version)?$/.test(verb(words))
        && !(verb(words, 1) === 'status')
        && !words.includes('--user'),
      'system.privileged',
    ),
  ip: words => when(SETS_IP.test(operands(words).join(' ')), 'system.privileged'),
  'ifconfig route': words => when(operands(words).length > 1, 'system.privileged'),
  'kill pkill killall': kill,
  'printenv export declare': (words, program) =>
    when(program === 'printenv' ? words.length === 0 : words.join() === '-p', 'secrets.access'),
  'pass op bw vault lpass gopass chamber sops secret-tool': words =>
    when(!/^(?:ls|list|status|version|--version|help|insert|generate)?$/.test(verb(words)), 'secrets.access'),
  security: words => when(/^(?:find-\w+-password|dump-keychain|export)$/.test(verb(words)), 'secrets.access'),
  gpg: words =>
    when(
      words.some(word => /^--export-secret|^--decrypt$|^-d$/.test(word)),
      'secrets.access',
    ),
}

const BY_PROGRAM: ReadonlyMap<string, Judge> = new Map(
  Object.entries(JUDGES).flatMap(([programs, judge]) => programs.split(' ').map(program => [program, judge] as const)),
)

/** The classes of one program with its arguments, without what these make it run. */
export const programClasses = (program: string, words: readonly string[]): readonly CommandClass[] => {
  const name = program.toLowerCase()
  if (name.startsWith('mkfs')) return ['files.destructive']
  if (name === 'python' || name === 'python3' || name === 'manage.py') {
    const said = operands(words)
    const managed = said[0]?.endsWith('manage.py') ? said[1] : undefined
    return when(managed === 'flush' || managed === 'reset_db', 'database.destructive')
  }
  if (name === 'php' && words[0]?.endsWith('artisan')) return BY_PROGRAM.get('artisan')!(words.slice(1), 'artisan')
  return BY_PROGRAM.get(name)?.(words, name) ?? NONE
}
