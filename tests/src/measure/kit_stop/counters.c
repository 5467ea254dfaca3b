/* Threads that never rest, each counting in its own place of a file that is shared memory: counters FILE THREADS */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void *count(void *place)
{
	volatile uint64_t *counter = place;
	for (;;)
		++*counter;
	return NULL;
}

int main(int count_of_words, char **words)
{
	if (count_of_words != 3)
		return 2;
	int threads = atoi(words[2]);
	/* A line of the cache to each, so that they do not wait for each other. */
	size_t size = (size_t)threads * 64;
	int file = open(words[1], O_RDWR | O_CREAT, 0644);
	if (file < 0 || ftruncate(file, size) != 0)
		return 1;
	char *counters = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (counters == MAP_FAILED)
		return 1;
	for (int n = 1; n < threads; n++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, count, counters + 64 * n) != 0)
			return 1;
	}
	count(counters);
	return 0;
}
