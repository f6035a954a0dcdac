// A small curve without axes, beside the number it belongs to. Screen readers have the number.
const WIDTH = 96;
const HEIGHT = 24;

export function sparkPath(values: readonly (number | null)[], width = WIDTH, height = HEIGHT): string {
  const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const step = values.length > 1 ? width / (values.length - 1) : width;
  return values
    .map((value, index) => {
      const y = height - 1.5 - ((value ?? 0) / most) * (height - 3);
      return `${index ? "L" : "M"}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}

export function Spark({ values, tone = "accent" }: { values: readonly (number | null)[]; tone?: string }) {
  if (values.length < 2) return <span class="spark" aria-hidden="true" />;
  const line = sparkPath(values);
  return (
    <svg class={`spark spark-${tone}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path class="spark-area" d={`${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`} />
      <path class="spark-line" d={line} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
