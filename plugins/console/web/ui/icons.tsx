const PATHS = {
  fleet: 'M3 4h12M3 9h12M3 14h12',
  inbox: 'M3 10l2-6h8l2 6v4H3v-4zm0 0h4l1 2h2l1-2h4',
  activity: 'M2 9h3l2-5 4 10 2-5h3',
  logs: 'M4 2h7l3 3v11H4V2zm3 6h5M7 11h5',
  people: 'M6.5 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2 15c0-3 2-4.5 4.5-4.5S11 12 11 15M13 5v6M10 8h6',
  machine: 'M3 3h12v9H3zM6 15h6M9 12v3',
  settings: 'M4 5h10M4 13h10M7 3v4M11 11v4',
  key: 'M6 12a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM9.5 8.5H16v3M13 8.5v2.5',
  models: 'M9 2l6 3.5v7L9 16l-6-3.5v-7L9 2zM3 5.5L9 9l6-3.5M9 9v7',
  secret: 'M4 8h10v7H4zM6 8V5.5a3 3 0 0 1 6 0V8',
  usage: 'M3 15V9M7 15V4M11 15v-4M15 15V7',
  extension: 'M7 3h4v3h4v9H3V6h4V3zM7 15v-3h4v3',
  skill: 'M4 3h8l2 2v10H4V3zM7 7h4M7 10h4',
  terminal: 'M3 4h12v10H3zM5.5 7.5l2 1.5-2 1.5M9 11h3',
  browser: 'M3 4h12v10H3zM3 7.5h12M5 5.8h.01',
  port: 'M4 5h10v7l-2 2H6l-2-2V5zM7 5v3M9 5v3M11 5v3',
  file: 'M5 2h5l4 4v10H5zM10 2v4h4',
  git: 'M6 5v8M6 5a1.6 1.6 0 1 0-.1 0M6 16.2a1.6 1.6 0 1 0-.1 0M13 8a1.6 1.6 0 1 0-.1 0M13 8c0 3-7 2-7 5',
  history: 'M4 5v4h4M4.5 9a5.5 5.5 0 1 1 1.5 4M9.5 6v4l2.5 1.5',
  clock: 'M9 16A7 7 0 1 0 9 2a7 7 0 0 0 0 14zM9 5v4l3 2',
  record: 'M3 4h12v8H8l-3 3v-3H3zM6 7h6M6 9.5h4',
  more: 'M4 9h.01M9 9h.01M14 9h.01',
  back: 'M11 4L6 9l5 5',
  down: 'M9 3v12M4 10l5 5 5-5',
  copy: 'M7 7h8v8H7zM11 7V3H3v8h4',
  done: 'M4 10l3.5 3.5L14 5.5',
  search: 'M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10zM12 12l4 4',
} as const

export type IconName = keyof typeof PATHS

/** A decorative icon beside a word. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 18 18" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
