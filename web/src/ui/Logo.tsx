export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#1d5fc4" />
      <path d="M6 15.2 26 7l-5.2 18-5.3-6.6z" fill="#fff" />
      <path d="m15.5 18.4-1 6.1 3.3-3.2M15.5 18.4 26 7" fill="none" stroke="#1d5fc4" stroke-width="1.3" stroke-linejoin="round" />
      <path d="m14.5 24.5 1-6.1 2.3 2.9z" fill="#bcd4ff" />
    </svg>
  );
}
