const PATHS = {
  fleet: 'M3 4h12M3 9h12M3 14h12',
  inbox: 'M3 10l2-6h8l2 6v4H3v-4zm0 0h4l1 2h2l1-2h4',
  activity: 'M2 9h3l2-5 4 10 2-5h3',
  logs: 'M4 2h7l3 3v11H4V2zm3 6h5M7 11h5',
  people: 'M6.5 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2 15c0-3 2-4.5 4.5-4.5S11 12 11 15M13 5v6M10 8h6',
  machine: 'M3 3h12v9H3zM6 15h6M9 12v3',
  settings: 'M4 5h10M4 13h10M7 3v4M11 11v4',
  back: 'M11 4L6 9l5 5',
  down: 'M9 3v12M4 10l5 5 5-5',
  search: 'M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10zM12 12l4 4',
} as const

export type IconName = keyof typeof PATHS

/** A line drawing beside a word; it says nothing by itself. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 18 18" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
