package compat;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** An application as Spring Boot configures it from application.properties: its template writes, its factory reads. */
@SpringBootApplication(proxyBeanMethods = false)
class Main {
    public static void main(String[] args) throws Exception {
        Report report = new Report();
        try (ConfigurableApplicationContext app = SpringApplication.run(Main.class, args)) {
            Checks.run(app.getBean(Spring.class), report);
        }
    }
}
