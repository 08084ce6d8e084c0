import type { ComponentChildren } from 'preact'

interface FigureTableProps {
  /** The title of the first column, and those of the columns with figures. */
  readonly head: readonly [what: string, ...figures: string[]]
  readonly children: ComponentChildren
}

/** A table whose rows say in figures what their first cell names; it scrolls sideways where it is too wide. */
export const FigureTable = ({ head: [what, ...figures], children }: FigureTableProps) => (
  <div class="table-box">
    <table>
      <thead>
        <tr>
          <th scope="col">{what}</th>
          {figures.map(title => (
            <th key={title} scope="col" class="number">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
)
