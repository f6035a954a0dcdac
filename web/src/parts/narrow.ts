// Is this a phone? Tables become cards there, and rows of a long list have another height.
import { useEffect, useState } from "preact/hooks";

const narrow = window.matchMedia("(max-width: 720px)");

export function useNarrow(): boolean {
  const [is, setIs] = useState(narrow.matches);
  useEffect(() => {
    const hear = () => setIs(narrow.matches);
    narrow.addEventListener("change", hear);
    return () => narrow.removeEventListener("change", hear);
  }, []);
  return is;
}
