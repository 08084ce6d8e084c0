import { cleanerOf, type LineCleaner } from './cleaner.js'

/** A column of curl's meter: a percentage and a size. */
const METER = String.raw`\s+\d+\s+[\d.]+[kMGT]?`

/** Cleaners for programs that install packages and fetch files. */
export const PACKAGE_CLEANERS: readonly LineCleaner[] = [
  cleanerOf(
    'node-packages',
    'What npm, yarn, pnpm and Bun say while they install',
    ['npm', 'yarn', 'pnpm', 'bun', 'corepack', 'lerna'],
    [
      /^npm (?:http|timing|info|verb|sill|silly|verbose|notice)\b/,
      /^npm (?:warn|WARN) deprecated /,
      /^(?:> )?\S+@\d\S* (?:pre|post)?install$/,
      /^\s*\d+ packages? (?:are|is) looking for funding$/,
      /^\s*run `npm fund` for details$/,
      /^Progress: resolved \d+/,
      /^(?:\[\d\/\d\]|➤ YN\d{4}: [│┌└]) /,
      /^yarn install v\d|^info (?:Direct|All) dependencies/,
      /^(?:├|└|│)─? .+@\d\S*$/,
      /^Packages: [+-]\d+$|^[+-]{5,}$/,
    ],
  ),
  cleanerOf(
    'python-packages',
    'What pip, uv, Poetry and conda say while they install',
    ['pip', 'pip3', 'python', 'python3', 'uv', 'poetry', 'pipenv', 'conda', 'mamba', 'pipx', 'tox', 'nox', 'hatch'],
    [
      /^\s*(?:Collecting|Downloading|Using cached|Obtaining|Processing|Looking in indexes|Looking in links)\b/,
      /^\s*(?:Preparing metadata|Getting requirements to build|Installing build dependencies|Building wheel)\b/,
      /^\s*(?:Building editable|Created wheel|Stored in directory|Created temporary|Attempting uninstall)\b/,
      /^\s*(?:Found existing installation|Uninstalling|Successfully uninstalled|Saved|Running command)\b/,
      /^\s*(?:Installing collected packages|Building wheels for collected packages)\b/,
      /^\s*Requirement already satisfied: /,
      /^\[notice\] /,
      /^\s*[-•] (?:Installing|Updating|Downgrading) \S+ \(/,
      /^ \+ [\w.-]+==\S+$/,
    ],
  ),
  cleanerOf(
    'system-packages',
    'What apt, dnf, apk, pacman and Homebrew say while they install',
    ['apt', 'apt-get', 'dpkg', 'aptitude', 'dnf', 'yum', 'apk', 'pacman', 'brew', 'zypper'],
    [
      /^(?:Get|Hit|Ign):\d+ /,
      /^(?:Reading|Building|Solving) (?:package lists|dependency tree|state information|database)/,
      /^(?:Selecting previously unselected package|Preparing to unpack|Unpacking|Setting up) /,
      /^(?:Processing triggers for|Fetched|Extracting templates|Need to get|After this operation) /,
      /^\(Reading database \.\.\./,
      /^\(\d+\/\d+\) (?:Installing|Upgrading|Purging) /,
      /^\s*(?:Installing|Verifying|Running scriptlet|Upgrading|Cleanup)\s*: .+\d+\/\d+\s*$/,
      /^==> (?:Downloading|Pouring|Fetching|Auto-updat)/,
      /^debconf: delaying package configuration/,
    ],
  ),
  cleanerOf(
    'downloads',
    'The meters of curl, wget and rclone',
    ['curl', 'wget', 'aria2c', 'rclone', 'rsync'],
    [
      /^\s*% Total\s+% Received % Xferd/,
      /^\s+Dload\s+Upload\s+Total\s+Spent/,
      new RegExp(`^${METER}${METER}\\s+\\d+${METER}(?:\\s+[-\\d:]+){3}\\s+[\\d.]+[kMGT]?\\s*$`),
      /^\s*\d+K\s[\s.,]+\d{1,3}%/,
      /^(?:Transferred|Elapsed time|Transferring):/,
      /^\s*[\d,]+\s+\d{1,3}%\s+[\d.]+[kMG]?B\/s\s+[\d:]+/,
    ],
  ),
]
