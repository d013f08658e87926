// Tests of the cache: what is stored comes back, and only under its own key; damage, links,
// strangers' folders and full disks are met by building anew; what was used last stays within the
// limit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "runtime/cuda/build.h"

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
  char root[64];
  const char *folder;
  Binary code, got;
} Fixture;

static const Blob key[] = {{"kernel", 6}, {"nvrtc 13", 8}};
enum { PARTS = COUNT(key) };

static int begin(void **state) {
  static Fixture f;
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  strcpy(f.root, "/tmp/schedc-cache-XXXXXX");
  if (!mkdtemp(f.root)) return 1;
  f.folder = sc_printf(&f.sc, "%s/a/b/schedc", f.root);
  f.code = (Binary){"\177ELF\0machine code", 17, "ptxas info : a log\n"};
  f.got = (Binary){0};
  *state = &f;
  return 0;
}

static int end(void **state) {
  Fixture *f = *state;
  const char *command = sc_printf(&f->sc, "rm -rf '%s'", f->root);
  int failed = system(command);
  sc_free(&f->sc);
  return failed;
}

enum { NO_LIMIT = 1 << 30 };
static void store(Fixture *f) { sc_cache_store(&f->sc, f->folder, NO_LIMIT, key, PARTS, &f->code); }
static bool load(Fixture *f) { return sc_cache_load(&f->sc, f->folder, key, PARTS, &f->got); }

// The path of the nth entry, "." apart; NULL: there are no more.
static const char *entry(Fixture *f, int n) {
  DIR *d = opendir(f->folder);
  const char *path = NULL;
  if (!d) return NULL;
  for (struct dirent *e; !path && (e = readdir(d));) {
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && n-- == 0)
      path = sc_printf(&f->sc, "%s/%s", f->folder, e->d_name);
  }
  closedir(d);
  return path;
}

static void comes_back(void **state) {
  Fixture *f = *state;
  assert_false(load(f));
  store(f);
  assert_true(load(f));
  assert_int_equal(f->got.n, f->code.n);
  assert_memory_equal(f->got.at, f->code.at, f->code.n);
  assert_string_equal(f->got.log, f->code.log);
  struct stat st;
  assert_int_equal(stat(f->folder, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  assert_non_null(entry(f, 0));
  assert_null(entry(f, 1));  // nothing temporary stays
  assert_int_equal(stat(entry(f, 0), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
}

static void empty_parts(void **state) {
  Fixture *f = *state;
  f->code = (Binary){"", 0, ""};
  store(f);
  assert_true(load(f));
  assert_int_equal(f->got.n, 0);
}

// The parts' borders belong to the key.
static void only_under_its_key(void **state) {
  Fixture *f = *state;
  static const Blob other[][PARTS] = {{{"kernel", 6}, {"nvrtc 12", 8}},
                                      {{"kerneln", 7}, {"vrtc 13", 7}},
                                      {{"kernelnvrtc 13", 14}, {"", 0}}};
  store(f);
  for (u32 i = 0; i < COUNT(other); i++)
    assert_false(sc_cache_load(&f->sc, f->folder, other[i], PARTS, &f->got));
  assert_false(sc_cache_load(&f->sc, f->folder, key, 1, &f->got));
}

// The name is a hash alone: an entry of another key under this name is not taken.
static void not_under_its_name_alone(void **state) {
  Fixture *f = *state;
  static const Blob other[] = {{"kernel", 6}, {"nvrtc 12", 8}};
  sc_cache_store(&f->sc, f->folder, NO_LIMIT, other, PARTS, &f->code);
  const char *from = entry(f, 0);
  store(f);
  const char *to = strcmp(entry(f, 0), from) ? entry(f, 0) : entry(f, 1);
  assert_int_equal(rename(from, to), 0);
  assert_false(load(f));
}

// Every byte counts, and so does the length.
static void damaged(void **state) {
  Fixture *f = *state;
  store(f);
  const char *path = entry(f, 0);
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  for (off_t at = 0; at < st.st_size; at++) {
    int fd = open(path, O_RDWR);
    char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_false(load(f));
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
  }
  assert_true(load(f));
  for (off_t n = st.st_size; n-- > 0;) {
    assert_int_equal(truncate(path, n), 0);
    assert_false(load(f));
  }
  store(f);  // mended
  assert_true(load(f));
  assert_int_equal(truncate(path, st.st_size + 1), 0);
  assert_false(load(f));
}

static void of_a_folder_open_to_others(void **state) {
  Fixture *f = *state;
  store(f);
  assert_int_equal(chmod(f->folder, 0777), 0);
  assert_false(load(f));
  assert_int_equal(chmod(f->folder, 0750), 0);
  assert_false(load(f));
  store(f);  // writes nothing, says nothing
  assert_int_equal(chmod(f->folder, 0700), 0);
  assert_true(load(f));
}

static void through_links(void **state) {
  Fixture *f = *state;
  store(f);
  const char *path = entry(f, 0), *aside = sc_printf(&f->sc, "%s/aside", f->root),
             *real = f->folder;
  assert_int_equal(rename(path, aside), 0);
  assert_int_equal(symlink(aside, path), 0);
  assert_false(load(f));  // an entry that is a link
  store(f);               // replaces the link, and does not write through it
  assert_true(load(f));
  struct stat st;
  assert_int_equal(lstat(path, &st), 0);
  assert_true(S_ISREG(st.st_mode));
  f->folder = sc_printf(&f->sc, "%s/link", f->root);
  assert_int_equal(symlink(real, f->folder), 0);
  assert_false(load(f));  // a folder that is a link
}

static void odd_files(void **state) {
  Fixture *f = *state;
  store(f);
  const char *path = entry(f, 0);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_false(load(f));  // and does not wait for a writer
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_false(load(f));
  store(f);
  assert_null(entry(f, 1));
}

static void where_no_folder_can_be(void **state) {
  Fixture *f = *state;
  f->folder = "/dev/null/schedc";
  store(f);
  assert_false(load(f));
  f->folder = "";
  store(f);
  assert_false(load(f));
}

// A write that fails half way leaves nothing behind.
static void full_disk(void **state) {
  Fixture *f = *state;
  struct rlimit old, small = {64, 0};
  store(f);
  assert_int_equal(unlink(entry(f, 0)), 0);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  small.rlim_max = old.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  store(f);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_null(entry(f, 0));
  assert_false(load(f));
}

static void which_folder(void **state) {
  Fixture *f = *state;
  setenv("HOME", "/home/u", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("SCHEDC_CACHE");
  assert_string_equal(sc_cache_folder(&f->sc, NULL), "/home/u/.cache/schedc");
  setenv("XDG_CACHE_HOME", "relative", 1);  // the specification says to ignore it
  assert_string_equal(sc_cache_folder(&f->sc, NULL), "/home/u/.cache/schedc");
  setenv("XDG_CACHE_HOME", "/x", 1);
  assert_string_equal(sc_cache_folder(&f->sc, NULL), "/x/schedc");
  setenv("SCHEDC_CACHE", "here", 1);
  assert_string_equal(sc_cache_folder(&f->sc, NULL), "here");
  assert_string_equal(sc_cache_folder(&f->sc, "there"), "there");
  unsetenv("SCHEDC_CACHE");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_null(sc_cache_folder(&f->sc, NULL));
}

// ---- the limit

// Entries numbered from 0, of about 1000 bytes each.
static void store_number(Fixture *f, u32 n, u64 limit) {
  static const char bytes[1000];
  const Blob numbered[] = {{&n, sizeof n}};
  sc_cache_store(&f->sc, f->folder, limit, numbered, 1, &(Binary){bytes, sizeof bytes, ""});
}
static bool load_number(Fixture *f, u32 n) {
  const Blob numbered[] = {{&n, sizeof n}};
  return sc_cache_load(&f->sc, f->folder, numbered, 1, &f->got);
}

static u64 bytes_of_all(Fixture *f) {
  u64 all = 0;
  struct stat st;
  const char *path;
  for (int i = 0; (path = entry(f, i)); i++) all += stat(path, &st) ? 0 : (u64)st.st_size;
  return all;
}

// Every file of the folder was last used `seconds` ago.
static void age(Fixture *f, time_t seconds) {
  const char *path;
  struct timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  for (int i = 0; (path = entry(f, i)); i++)
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void least_recently_used_goes(void **state) {
  Fixture *f = *state;
  for (u32 i = 0; i < 100; i++) store_number(f, i, NO_LIMIT);
  u64 one = bytes_of_all(f) / 100;
  age(f, 10);
  assert_true(load_number(f, 7));  // the use that counts
  store_number(f, 100, 2 * one);
  assert_int_equal(bytes_of_all(f), 2 * one);  // of more than are looked at in one go
  assert_true(load_number(f, 7));
  assert_true(load_number(f, 100));
  store_number(f, 101, one);
  assert_true(load_number(f, 101));
  assert_false(load_number(f, 100));
  store_number(f, 102, one - 1);  // what does not fit is not kept
  assert_int_equal(bytes_of_all(f), 0);
}

// What is not ours stays, whatever it is called, and so does what another process is writing.
static void only_entries_go(void **state) {
  Fixture *f = *state;
  static const char *const others[] = {"notes.txt", "0123456789abcdef0123456789abcde",
                                       "0123456789ABCDEF0123456789ABCDEF", ".new-x", ".new-1-2"};
  store_number(f, 0, NO_LIMIT);
  for (u32 i = 0; i < COUNT(others); i++)
    close(open(sc_printf(&f->sc, "%s/%s", f->folder, others[i]), O_CREAT | O_WRONLY, 0600));
  const char *link = sc_printf(&f->sc, "%s/00000000000000000000000000000000", f->folder),
             *folder = sc_printf(&f->sc, "%s/00000000000000000000000000000001", f->folder);
  assert_int_equal(symlink("notes.txt", link), 0);
  assert_int_equal(mkdir(folder, 0700), 0);
  store_number(f, 1, 1);
  assert_false(load_number(f, 0));
  assert_false(load_number(f, 1));
  assert_non_null(entry(f, COUNT(others) + 1));
  assert_null(entry(f, COUNT(others) + 2));
  age(f, 7200);
  store_number(f, 1, 1);
  assert_null(entry(f, COUNT(others) + 1));  // .new-1-2: whoever wrote it has died
  assert_int_not_equal(access(sc_printf(&f->sc, "%s/.new-1-2", f->folder), F_OK), 0);
  assert_int_equal(access(sc_printf(&f->sc, "%s/.new-x", f->folder), F_OK), 0);
}

// Several processes store, load and prune at once: what is loaded is right, and the limit holds.
static void of_many_processes(void **state) {
  Fixture *f = *state;
  enum { PROCESSES = 4, ENTRIES = 60, LIMIT = 20000 };
  for (u32 p = 0; p < PROCESSES; p++) {
    if (fork()) continue;
    for (u32 i = 0; i < 4 * ENTRIES; i++) {
      u32 n = (i * (2 * p + 1) + p) % ENTRIES;
      if (load_number(f, n) && f->got.n != 1000) _exit(1);
      store_number(f, n, LIMIT);
    }
    _exit(0);
  }
  int status, wrong = 0;
  for (u32 p = 0; p < PROCESSES; p++) wrong |= wait(&status) < 0 || status != 0;
  assert_int_equal(wrong, 0);
  assert_true(bytes_of_all(f) <= LIMIT);
  assert_true(bytes_of_all(f) > LIMIT / 2);
}

static void which_limit(void **state) {
  (void)state;
  enum { USUAL = 1 << 30 };
  static const struct {
    const char *text;
    u64 bytes;
  } row[] = {{"0", 0},
             {"1000", 1000},
             {"3K", 3072},
             {"2M", 2 << 20},
             {"4G", 4ull << 30},
             {"", USUAL},
             {"-1", USUAL},
             {"1T", USUAL},
             {"1Kb", USUAL},
             {"99999999999999999999", USUAL},
             {"99999999999999G", USUAL}};
  const char *wrong;
  unsetenv("SCHEDC_CACHE_SIZE");
  assert_int_equal(sc_cache_limit(0, &wrong), USUAL);
  assert_null(wrong);
  for (u32 i = 0; i < COUNT(row); i++) {
    setenv("SCHEDC_CACHE_SIZE", row[i].text, 1);
    assert_int_equal(sc_cache_limit(0, &wrong), row[i].bytes);
    if (row[i].bytes == USUAL && row[i].text[0]) assert_string_equal(wrong, row[i].text);
    else assert_null(wrong);
    assert_int_equal(sc_cache_limit(5, &wrong), 5);
    assert_null(wrong);
  }
  unsetenv("SCHEDC_CACHE_SIZE");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
  const struct CMUnitTest tests[] = {TEST(comes_back),
                                     TEST(empty_parts),
                                     TEST(only_under_its_key),
                                     TEST(not_under_its_name_alone),
                                     TEST(damaged),
                                     TEST(of_a_folder_open_to_others),
                                     TEST(through_links),
                                     TEST(odd_files),
                                     TEST(where_no_folder_can_be),
                                     TEST(full_disk),
                                     TEST(which_folder),
                                     TEST(least_recently_used_goes),
                                     TEST(only_entries_go),
                                     TEST(of_many_processes),
                                     TEST(which_limit)};
  return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
